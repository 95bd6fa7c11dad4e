"""Settings of callouts: the voice, and replays."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from footlights_transports import ConfigError, load_config
from footlights_transports.views.mission.missions import MissionSettings
from footlights_transports.views.mission.view import MissionView
from footlights_transports.views.mission.voice import EspeakVoice
from tests.kit.serving import view_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def espeak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name, whatever it does."""
    program = tmp_path / "bin" / "espeak-ng"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))


def written(folder: Path, text: str) -> Path:
    file = folder / "game.toml"
    file.write_text(f"[mission]\n{text}\n")
    return file


def test_by_default_nothing_is_heard_and_nothing_is_a_replay() -> None:
    assert view_of(load_config(), MissionView).settings == MissionSettings()


def test_a_server_can_be_started_for_a_replay(tmp_path: Path) -> None:
    assert view_of(load_config(written(tmp_path, "replay = true")), MissionView).settings.replay


@pytest.mark.usefixtures("espeak")
def test_a_folder_for_voices_is_spoken_into(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, 'voice_folder = "voices"\naudio_seconds = 90\nreplay = true'))
    settings = view_of(config, MissionView).settings
    assert isinstance(settings.voice, EspeakVoice)
    assert settings.folder == tmp_path / "voices"
    assert (settings.audio_seconds, settings.replay) == (90, True)


@pytest.mark.usefixtures("espeak")
def test_a_file_is_no_folder_for_voices(tmp_path: Path) -> None:
    (tmp_path / "voices").write_text("")
    with pytest.raises(ConfigError, match=r"mission\.voice_folder names .*voices, which is not a folder"):
        load_config(written(tmp_path, 'voice_folder = "voices"'))


def test_a_folder_for_voices_needs_a_program_that_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"mission\.voice_folder cannot be used: There is no espeak-ng"):
        load_config(written(tmp_path, 'voice_folder = "voices"'))
