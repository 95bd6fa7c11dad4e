"""Voices: real processes that speak into a pipe, or fail."""

from __future__ import annotations

import io
import shutil
import stat
import wave
from typing import TYPE_CHECKING

import pytest
import trio

from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.policy import decide
from footlights_transports.views.mission.voice import EspeakVoice, VoiceError
from tests.kit.callouts import LISTENING, TONE, mission_event

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_transports.views.mission.pure.payload import UtilityPayload


def payload(change: str = "The guard woke.") -> UtilityPayload:
    return decide(mission_event(change), LISTENING, History(), 0).payload


def program(folder: Path, script: str) -> str:
    """A program in place of espeak-ng."""
    file = folder / "speaker"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


async def test_the_words_go_through_a_pipe_and_the_sound_comes_back(tmp_path: Path) -> None:
    said = await EspeakVoice(program(tmp_path, 'cat; echo "$@"')).speak(payload())
    assert said == b"The guard woke.--stdin --stdout\n"


async def test_the_sound_has_its_sizes_although_the_program_could_not_know_them(tmp_path: Path) -> None:
    """The header of espeak-ng on a pipe, as its source has it."""
    unsaid = TONE[:4] + b"\x24\xf0\xff\x7f" + TONE[8:40] + b"\x00\xf0\xff\x7f" + TONE[44:]
    (tmp_path / "sound").write_bytes(unsaid)
    said = await EspeakVoice(program(tmp_path, f'cat >/dev/null; cat "{tmp_path}/sound"')).speak(payload())
    assert said == TONE


async def test_text_in_brackets_is_not_read_as_phonemes(tmp_path: Path) -> None:
    said = await EspeakVoice(program(tmp_path, "cat")).speak(payload("See [[[h@loU]]] now."))
    assert said == b"See [ [ [h@loU]]] now."


@pytest.mark.parametrize("script", ["cat; exit 3", "cat >/dev/null"], ids=["status", "silence"])
async def test_a_program_that_fails_is_an_error(tmp_path: Path, script: str) -> None:
    with pytest.raises(VoiceError) as failed:
        await EspeakVoice(program(tmp_path, script)).speak(payload())
    assert "guard" not in str(failed.value)


async def test_a_program_that_is_cancelled_ends(tmp_path: Path) -> None:
    voice = EspeakVoice(program(tmp_path, f'mkfifo "{tmp_path}/wait"; read it <"{tmp_path}/wait"'))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(voice.speak, payload())
        while not await trio.Path(tmp_path / "wait").exists():  # noqa: ASYNC110 - it is made by another process
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


def test_a_missing_program_is_an_error() -> None:
    with pytest.raises(VoiceError, match="There is no espeak-ng on this machine"):
        EspeakVoice("no-such-program")


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="there is no espeak-ng here")
async def test_espeak_makes_sound_that_can_be_played() -> None:
    with wave.open(io.BytesIO(await EspeakVoice().speak(payload())), "rb") as sound:
        assert sound.getnframes() / sound.getframerate() > 0.3
