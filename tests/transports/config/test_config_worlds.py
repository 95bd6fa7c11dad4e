"""`[worlds]` of the settings: names, templates, limits, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights_transports import Config, ConfigError, load_config
from tests.kit.served import write_game

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, worlds: str) -> Config:
    return load_config(write_game(folder, f"[worlds]\n{worlds}"))


def problems(folder: Path, worlds: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        loaded(folder, worlds)
    return [each.sentence for each in refused.value.problems]


def test_without_the_section_there_is_one_world(tmp_path: Path) -> None:
    worlds = load_config(write_game(tmp_path)).worlds
    assert worlds.exists("main")
    assert not worlds.exists("harbour")
    assert worlds.folder == tmp_path / "game.worlds"
    assert (list(worlds.names), worlds.max_on_demand, worlds.max_open, worlds.idle_seconds) == ([], 0, 1_000, 300.0)


def test_a_template_is_a_settings_file_with_another_cast(tmp_path: Path) -> None:
    (tmp_path / "arena.toml").write_text('[cast]\nmake = "served_game:make"\n[limits]\nmax_open_turns = 7\n')
    config = loaded(tmp_path, 'names = ["harbour"]\n[worlds.templates]\n"arena-*" = "arena.toml"\n')
    arena = config.worlds.config_of("arena-1")
    assert arena is not None
    assert arena.limits.max_open_turns == 7
    assert arena.cast is not config.cast
    assert config.worlds.config_of("harbour") is config.worlds.config_of("main") is None


def test_a_reload_makes_no_cast_of_a_template_again(tmp_path: Path) -> None:
    (tmp_path / "arena.toml").write_text('[cast]\nmake = "served_game:make"\n')
    config = loaded(tmp_path, '[worlds.templates]\n"arena-*" = "arena.toml"\n')
    again = load_config(config.file, cast=config.cast, worlds=config.worlds)
    assert again.worlds.templates["arena-*"].cast is config.worlds.templates["arena-*"].cast


@pytest.mark.parametrize("name", ["", "Inn", "main", "../inn", "a b", "-inn"])
def test_a_name_that_cannot_be_one_is_a_problem(tmp_path: Path, name: str) -> None:
    (said,) = problems(tmp_path, f'names = ["{name}"]\n')
    assert said.startswith("worlds.names ")
    assert not name or name == "main" or name not in said


@pytest.mark.parametrize(
    ("worlds", "said"),
    [
        ("max_on_demand = -1\n", "worlds.max_on_demand must be a whole number from 0 up."),
        ("max_open = 0\n", "worlds.max_open must be a whole number from 1 up."),
        ("many = true\n", "worlds.many is not a setting."),
        ('[worlds.templates]\n"Arena*" = "arena.toml"\n', "worlds.templates.Arena* is for no world:"),
        ('[worlds.templates]\n"arena-*" = 3\n', "worlds.templates.arena-* must be the path of a settings file."),
        ('[worlds.templates]\n"arena-*" = "nowhere.toml"\n', "cannot be read: No such file or directory."),
        ('[worlds.templates]\n"arena-*" = "server.toml"\n', "that holds for the whole server."),
    ],
)
def test_what_is_wrong_with_worlds_is_said(tmp_path: Path, worlds: str, said: str) -> None:
    (tmp_path / "server.toml").write_text('[cast]\nmake = "served_game:make"\n[server]\nhost = "127.0.0.1"\n')
    assert any(said in each for each in problems(tmp_path, worlds))


def test_no_two_worlds_have_one_ledger(tmp_path: Path) -> None:
    file = write_game(tmp_path, 'ledger = "arena.ledger"\n[worlds]\nfolder = "."\nnames = ["arena"]\n')
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    assert any("that of the main world" in each.sentence for each in refused.value.problems)
