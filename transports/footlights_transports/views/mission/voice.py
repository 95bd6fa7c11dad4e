"""Voices: what makes a spoken sentence of a callout.

A voice may be slow, may fail and may be missing. Nothing waits for it but the callout that it speaks, and whatever it
raises becomes `voice_backend_error`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import rfc8785
import trio
from blake3 import blake3

from footlights.errors import FootlightsError
from footlights.private_files import create_for_owner_only

if TYPE_CHECKING:
    from footlights_transports.views.mission.pure.payload import UtilityPayload

PROGRAM = "espeak-ng"
MAX_FILES = 500
"""The oldest recordings go first."""

_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_PHONEMES = re.compile(r"\[(?=\[)")
"""For espeak-ng, what stands in two brackets is no text but sounds."""
_MAX_NAME_CHARS = 100
_DIGEST_BYTES = 6


class VoiceError(FootlightsError):
    """A voice could not speak. The message says why, without what it should have said."""

    code = "voice_backend_error"


class Voice(Protocol):
    """Speaks. It may be asked for several callouts at once."""

    async def speak(self, payload: UtilityPayload) -> None:
        """Speak what `payload.voice` says, and return when that is done. Whatever it raises is a failure.

        It is cancelled when it takes too long. One that goes on all the same is left behind: it has failed, and keeps
        its place among those that speak until it ends.
        """
        ...


class NullVoice:
    """Speaks to nobody, and never fails."""

    async def speak(self, payload: UtilityPayload) -> None:
        await trio.lowlevel.checkpoint()


class EspeakVoice:
    """Writes each callout as a WAV file into a folder, with espeak-ng.

    A file that is there is complete, and holds what one callout said: another has it only if it says the same under the
    same ids. What is said goes through a pipe and never into the list of processes.
    Raises `VoiceError` if there is no such program.
    """

    def __init__(self, folder: Path, program: str = PROGRAM, max_files: int = MAX_FILES) -> None:
        path = shutil.which(program)
        if path is None:
            raise VoiceError(f"There is no {PROGRAM} on this machine.")
        self._folder = trio.Path(folder)
        self._program = path
        self._max_files = max_files
        self._asked = 0
        # Now and not at the first callout: two that speak at once would look at what the other one removes.
        found = sorted(folder.glob("*.wav"), key=lambda file: file.lstat().st_mtime_ns)
        self._written = deque(trio.Path(file) for file in found)
        """The recordings in the folder, the oldest first."""

    async def speak(self, payload: UtilityPayload) -> None:
        assert payload.voice is not None, "there is nothing to speak"
        file = self._folder / f"{_file_name(payload, payload.voice.text)}.wav"
        self._asked += 1
        part = file.with_suffix(f".{self._asked}.part")
        await self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            await self._record(payload.voice.text, part)
            await part.rename(file)
        finally:
            with trio.CancelScope(shield=True):
                await part.unlink(missing_ok=True)
        await self._keep(file)

    async def _record(self, text: str, part: trio.Path) -> None:
        create_for_owner_only(Path(part))  # the program writes into it, and keeps its mode
        ended = await trio.run_process(
            [self._program, "--stdin", "-w", str(part)],
            stdin=_PHONEMES.sub("[ ", text).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if ended.returncode != 0 or not (await part.stat()).st_size:
            raise VoiceError(f"{PROGRAM} ended with {ended.returncode} and wrote nothing that can be heard.")

    async def _keep(self, file: trio.Path) -> None:
        """This one, and no more than so many of those before."""
        if file not in self._written:
            self._written.append(file)
        while len(self._written) > self._max_files:
            await self._written.popleft().unlink(missing_ok=True)


def _file_name(payload: UtilityPayload, words: str) -> str:
    """Readable, and its own: what is unfit for a file, whose it is and what it says is only in the digest."""
    basis = [payload.tenant_id, payload.mission_id, payload.event_id, words]
    digest = blake3(rfc8785.dumps(basis)).hexdigest(length=_DIGEST_BYTES)
    return f"{_name(payload.mission_id)}-{_name(payload.event_id)}-{digest}"


def _name(identifier: str) -> str:
    return _UNFIT.sub("_", identifier)[:_MAX_NAME_CHARS].lstrip(".") or "_"
