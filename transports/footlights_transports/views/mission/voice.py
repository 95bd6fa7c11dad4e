"""Voices: speech output for callouts.

A voice may be slow, may fail and may be missing. Only its own callout waits for it, and whatever it raises becomes
`voice_backend_error`.
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
"""Of the folder. The oldest recordings are removed first."""

_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_PHONEMES = re.compile(r"\[(?=\[)")
"""espeak-ng reads text in two brackets as phonemes."""
_MAX_NAME_CHARS = 100
_DIGEST_BYTES = 6


class VoiceError(FootlightsError):
    """A voice failed. The message has the cause, and never the text of the callout."""

    code = "voice_backend_error"


class Voice(Protocol):
    """Speech output. It may be called for several callouts at once."""

    async def speak(self, payload: UtilityPayload) -> None:
        """Speak `payload.voice`, and return when that is done. Whatever it raises is a failure.

        It is cancelled when it takes too long. If it resists cancellation, it has failed, and takes up one of the
        voices until it ends.
        """
        ...


class NullVoice:
    """A voice without output. It never fails."""

    async def speak(self, payload: UtilityPayload) -> None:
        await trio.lowlevel.checkpoint()


class EspeakVoice:
    """Writes each callout as a WAV file into a folder, with espeak-ng.

    A file is written under a temporary name and renamed, so it is always complete. Its name has a digest of the ids and
    the words. The words go through a pipe, so they never appear in the list of processes. Raises `VoiceError` if
    espeak-ng is not installed.
    """

    def __init__(self, folder: Path, program: str = PROGRAM, max_files: int = MAX_FILES) -> None:
        path = shutil.which(program)
        if path is None:
            raise VoiceError(f"There is no {PROGRAM} on this machine.")
        self._folder = trio.Path(folder)
        self._program = path
        self._max_files = max_files
        self._asked = 0
        # Here and not at the first callout: of two at once, one would list files while the other removes them.
        found = sorted(folder.glob("*.wav"), key=lambda file: file.lstat().st_mtime_ns)
        self._written = deque(trio.Path(file) for file in found)
        """The recordings of the folder, the oldest first."""

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
        create_for_owner_only(Path(part))  # the program keeps its mode
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
        """Keep this recording, and remove the oldest above the limit."""
        if file not in self._written:
            self._written.append(file)
        while len(self._written) > self._max_files:
            await self._written.popleft().unlink(missing_ok=True)


def _file_name(payload: UtilityPayload, words: str) -> str:
    """A readable and unique name. The tenant, the words and the exact ids are only in its digest."""
    basis = [payload.tenant_id, payload.mission_id, payload.event_id, words]
    digest = blake3(rfc8785.dumps(basis)).hexdigest(length=_DIGEST_BYTES)
    return f"{_name(payload.mission_id)}-{_name(payload.event_id)}-{digest}"


def _name(identifier: str) -> str:
    return _UNFIT.sub("_", identifier)[:_MAX_NAME_CHARS].lstrip(".") or "_"
