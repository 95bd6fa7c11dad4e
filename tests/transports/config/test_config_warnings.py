"""Warnings about settings that are right, and will not do what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights_transports import load_config

if TYPE_CHECKING:
    from pathlib import Path

REMOTE = """
[models.ferryman]
kind = "openai"
name = "bard"
base_url = "https://models.example/v1"
key_env = "FERRY_KEY"
"""


def warnings(folder: Path, caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    file = folder / "game.toml"
    file.write_text(text, encoding="utf-8")
    load_config(file)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("consent", [True, False])
def test_a_persona_of_remote_models_without_consent_is_warned_of(
    consent: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRY_KEY", "xyzzy")
    text = f"[cast]\nremote_models = {str(consent).lower()}\n[personas.ferryman]\n{REMOTE}"
    said = warnings(tmp_path, caplog, text)
    if consent:
        assert said == []
    else:
        (sentence,) = said
        assert sentence.startswith("ferryman has only remote models")
        assert sentence.endswith("remote_models = true in [cast] gives it")


def test_a_model_of_this_machine_needs_no_consent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = REMOTE.replace("https://models.example", "http://127.0.0.1:9").replace('key_env = "FERRY_KEY"\n', "")
    assert warnings(tmp_path, caplog, text) == []


@pytest.mark.parametrize("key", [None, "", "xyzzy"])
def test_a_key_that_is_not_set_is_warned_of_with_its_line_and_without_its_name(
    key: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FERRY_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("FERRY_KEY", key)
    said = warnings(tmp_path, caplog, f"[cast]\nremote_models = true{REMOTE}")
    problem = f"{tmp_path / 'game.toml'}:7: models.ferryman.key_env names an environment variable that is not set."
    assert said == ([] if key else [problem])


SCRIPTED = 'kind = "scripted"\nscript = "footlights_actors.demo.tavern.innkeeper:innkeeper"\n'


def test_a_persona_speaks_with_the_model_of_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "game.toml"
    file.write_text(
        f"[models.odo]\n{SCRIPTED}[models.smuggler]\n{SCRIPTED}[personas.odo]\n[personas.smuggler]\n"
        "[personas.guest]\n[personas.twin]\nmodels = ['smuggler']\n",
        encoding="utf-8",
    )
    personas = load_config(file).cast.personas
    assert [personas[each].models for each in ("odo", "smuggler", "guest", "twin")] == [
        ("odo",),
        ("smuggler",),
        (),
        ("smuggler",),
    ]


@pytest.mark.parametrize(
    ("personas", "unused"),
    [
        ("", "smuggler"),
        ("[personas.smuggler]\n", "odo"),
        ("[personas.guest]\n[personas.smuggler]\n", None),
        ("[personas.guest]\nmodels = ['odo', 'smuggler']\n", None),
    ],
)
def test_a_model_that_no_persona_uses_is_warned_of_with_its_line(
    personas: str, unused: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = warnings(tmp_path, caplog, f"[models.odo]\n{SCRIPTED}[models.smuggler]\n{SCRIPTED}{personas}")
    line = {"odo": 1, "smuggler": 4, None: 0}[unused]
    hint = "name it in the models of a persona, or in the params of a turn."
    place = f"{tmp_path / 'game.toml'}:{line}: models.{unused}"
    assert said == ([] if unused is None else [f"{place} is used by no persona: {hint}"])
