"""Settings of the chat gateway, and their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights_actors.sealed import CONTENT_KEYS_VARIABLE
from footlights_actors.sealed.keys import new_key
from footlights_transports import ConfigError, load_config
from footlights_transports.views.kgent import view as kgent_view
from footlights_transports.views.kgent.store import ContentStore
from footlights_transports.views.kgent.view import KgentView
from tests.kit.serving import view_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def written(folder: Path, text: str) -> Path:
    file = folder / "game.toml"
    file.write_text(text)
    return file


def problem(file: Path, environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as refused:
        load_config(file, environ)
    return str(refused.value)


def test_without_settings_nothing_is_kept(tmp_path: Path) -> None:
    chat = view_of(load_config(written(tmp_path, "")), KgentView)
    assert chat.keeper is None
    assert chat.flux.stream_timeout == 30


def test_how_the_gateway_streams_can_be_set(tmp_path: Path) -> None:
    file = written(tmp_path, "[chat]\nemit_thoughts = true\nbuffer_chunks = 2\nstream_timeout = 5\n")
    flux = view_of(load_config(file), KgentView).flux
    assert (flux.emit_thoughts, flux.buffer_chunks, flux.stream_timeout) == (True, 2, 5)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("emit_thoughts = 1", "chat.emit_thoughts must be true or false"),
        ("buffer_chunks = 0", "chat.buffer_chunks is refused"),
        ("entropy_budget = 0", "chat.entropy_budget is refused"),
        ("heartbeat = 3", "chat.heartbeat is not a setting"),
    ],
)
def test_what_makes_no_sense_is_complained_of(tmp_path: Path, line: str, why: str) -> None:
    assert why in problem(written(tmp_path, f"[chat]\n{line}\n"))


def test_a_session_has_tokens_for_a_whisper_at_least(tmp_path: Path) -> None:
    assert "not enough for a whisper" in problem(written(tmp_path, "[chat]\nsession_tokens = 99\n"))


def test_the_keys_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "keys").touch(0o600)
    (tmp_path / "keys").write_text(new_key())
    file = written(tmp_path, '[chat]\ncontent_folder = "kept"\ncontent_keys_file = "keys"\n')
    assert isinstance(view_of(load_config(file), KgentView).keeper, ContentStore)
    file = written(tmp_path, '[chat]\ncontent_folder = "kept"\ncontent_days = 30\n')
    keeper = view_of(load_config(file, {CONTENT_KEYS_VARIABLE: new_key()}), KgentView).keeper
    assert isinstance(keeper, ContentStore)


def test_without_a_key_the_server_does_not_start_and_says_why(tmp_path: Path) -> None:
    file = written(tmp_path, '[chat]\ncontent_folder = "kept"\n')
    assert f"The variable {CONTENT_KEYS_VARIABLE} has no key" in problem(file)
    said = problem(file, {CONTENT_KEYS_VARIABLE: "xyzzy-no-key"})
    assert "32 bytes" in said
    assert "xyzzy" not in said


def test_keys_without_a_folder_are_of_no_use(tmp_path: Path) -> None:
    for line in ('content_keys_file = "keys"', "content_days = 30"):
        assert "of no use" in problem(written(tmp_path, f"[chat]\n{line}\n"))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kgent_view, "find_spec", lambda _: None)
    file = written(tmp_path, '[chat]\ncontent_folder = "kept"\n')
    assert "install the extra content (from a checkout: pip install '.[content]')" in problem(
        file, {CONTENT_KEYS_VARIABLE: new_key()}
    )


def test_the_variable_of_the_keys_is_no_stranger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_config(written(tmp_path, ""), {CONTENT_KEYS_VARIABLE: new_key()})
    assert not caplog.records
