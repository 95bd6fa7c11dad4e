"""Voices: real processes that write real files, or fail."""

from __future__ import annotations

import os
import shutil
import stat
import wave
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.policy import decide
from footlights_transports.views.mission.voice import EspeakVoice, NullVoice, VoiceError
from tests.kit.callouts import LISTENING, mission_event

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_transports.views.mission.pure.payload import UtilityPayload

NAME = "heist-e1-f3c923cc3660"
"""The name of the file for `payload()`."""


def payload(
    event_id: str = "e1", mission_id: str = "heist", tenant_id: str = "default", change: str = "The guard woke."
) -> UtilityPayload:
    event = mission_event(change, mission_id=mission_id, event_id=event_id)
    return decide(event, evolve(LISTENING, tenant_id=tenant_id), History(), 0).payload


def program(folder: Path, script: str) -> str:
    """A program in place of espeak-ng that writes to `$out`."""
    file = folder / "speaker"
    file.write_text(f'#!/bin/sh\nout="$3"\n{script}\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


async def test_the_words_go_through_a_pipe_into_a_file(tmp_path: Path) -> None:
    voice = EspeakVoice(tmp_path / "a" / "wav", program(tmp_path, 'cat >"$out"; echo "$@" >>"$out"'))
    await voice.speak(payload())
    (file,) = (tmp_path / "a" / "wav").iterdir()
    assert file.name == f"{NAME}.wav"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said, arguments = file.read_text().split("--stdin")
    assert said == "The guard woke."
    assert "guard" not in arguments


async def test_text_in_brackets_is_not_read_as_phonemes(tmp_path: Path) -> None:
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'))
    await voice.speak(payload(change="See [[[h@loU]]] now."))
    (file,) = (tmp_path / "wav").iterdir()
    assert file.read_text() == "See [ [ [h@loU]]] now."


@pytest.mark.parametrize("script", ['cat >"$out"; exit 3', "cat >/dev/null"], ids=["status", "no file"])
async def test_a_program_that_fails_is_an_error_and_leaves_nothing(tmp_path: Path, script: str) -> None:
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, script))
    with pytest.raises(VoiceError) as failed:
        await voice.speak(payload())
    assert "guard" not in str(failed.value)
    assert list((tmp_path / "wav").iterdir()) == []


async def test_a_program_that_is_cancelled_ends_and_leaves_nothing(tmp_path: Path) -> None:
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"; mkfifo "$out.wait"; read it <"$out.wait"'))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(voice.speak, payload())
        part = trio.Path(tmp_path / "wav" / f"{NAME}.1.part.wait")
        while not await part.exists():  # noqa: ASYNC110 - it is made by another process
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert [each.name for each in (tmp_path / "wav").iterdir()] == [f"{NAME}.1.part.wait"]


async def test_the_oldest_files_are_removed_above_the_limit(tmp_path: Path) -> None:
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'), max_files=2)
    for event_id in ("e1", "e2", "e2", "e3"):
        await voice.speak(payload(event_id))
    left = sorted(each.name.rpartition("-")[0] for each in (tmp_path / "wav").iterdir())
    assert left == ["heist-e2", "heist-e3"]


async def test_files_of_earlier_runs_count_too(tmp_path: Path) -> None:
    (tmp_path / "wav").mkdir()
    for age, name in enumerate(("newer", "older")):
        (tmp_path / "wav" / f"{name}.wav").write_text("")
        os.utime(tmp_path / "wav" / f"{name}.wav", (1_000 - age, 1_000 - age))
    await EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'), max_files=2).speak(payload())
    assert sorted(each.name for each in (tmp_path / "wav").iterdir()) == [f"{NAME}.wav", "newer.wav"]


async def test_two_first_callouts_at_once_keep_the_limit(tmp_path: Path) -> None:
    (tmp_path / "wav").mkdir()
    for number in range(20):
        (tmp_path / "wav" / f"old{number}.wav").write_text("")
    for attempt in range(10):  # the order depends on threads
        voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'), max_files=20)
        async with trio.open_nursery() as nursery:
            for each in ("a", "b"):
                nursery.start_soon(voice.speak, payload(f"{each}{attempt}"))
        assert len(list((tmp_path / "wav").iterdir())) == 20


async def test_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'))
    await voice.speak(payload("../../x", "..:" + "y" * 500))
    (file,) = (tmp_path / "wav").iterdir()
    assert file.name.startswith(f"_{'y' * 97}-_.._x-")


async def test_no_two_callouts_have_the_same_file(tmp_path: Path) -> None:
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'))
    ids = [("e1", "heist", "ann"), ("e1", "heist", "bob"), ("c", "a-b", "t"), ("b-c", "a", "t"), ("e:1", "m", "t")]
    for each in [*ids, ("e@1", "m", "t")]:
        await voice.speak(payload(*each))
    assert len(list((tmp_path / "wav").iterdir())) == 6


async def test_other_words_under_the_same_id_have_another_file(tmp_path: Path) -> None:
    """The ids of a server begin anew with each start, and a client may use an id twice."""
    voice = EspeakVoice(tmp_path / "wav", program(tmp_path, 'cat >"$out"'))
    for change in ("The guard woke.", "The guard slept.", "The guard woke."):
        await voice.speak(payload(change=change))
    said = sorted(each.read_text() for each in (tmp_path / "wav").iterdir())
    assert said == ["The guard slept.", "The guard woke."]


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VoiceError, match="There is no espeak-ng on this machine"):
        EspeakVoice(tmp_path, program="no-such-program")


async def test_the_null_voice_never_fails() -> None:
    await NullVoice().speak(payload())


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="there is no espeak-ng here")
async def test_espeak_writes_sound_that_can_be_played(tmp_path: Path) -> None:
    await EspeakVoice(tmp_path).speak(payload())
    with wave.open(str(tmp_path / f"{NAME}.wav"), "rb") as sound:
        assert sound.getnframes() / sound.getframerate() > 0.3
