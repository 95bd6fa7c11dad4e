"""Voices: speech output for callouts.

A voice may be slow, may fail and may be missing. Only its own callout waits for it, and whatever it raises becomes
`voice_backend_error`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from struct import pack
from typing import TYPE_CHECKING, Protocol

import trio

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from footlights_transports.views.mission.pure.payload import UtilityPayload

PROGRAM = "espeak-ng"

_PHONEMES = re.compile(r"\[(?=\[)")
"""espeak-ng reads text in two brackets as phonemes."""
_HEADER_BYTES = 44


class VoiceError(FootlightsError):
    """A voice failed. The message has the cause, and never the text of the callout."""

    code = "voice_backend_error"


class Voice(Protocol):
    """Speech output. It may be called for several callouts at once."""

    async def speak(self, payload: UtilityPayload) -> bytes | None:
        """Speak `payload.voice`, and return when that is done. Whatever it raises is a failure.

        It returns a WAV file for the owner of the mission to fetch, or None if it was heard elsewhere.

        It is cancelled when it takes too long. If it resists cancellation, it has failed, and takes up one of the
        voices until it ends.
        """
        ...


class EspeakVoice:
    """Speaks with espeak-ng. Raises `VoiceError` if that is not installed.

    The words and the sound go through pipes, so they never appear in the list of processes or in a file.
    """

    def __init__(self, program: str = PROGRAM) -> None:
        path = shutil.which(program)
        if path is None:
            raise VoiceError(f"There is no {PROGRAM} on this machine.")
        self._program = path

    async def speak(self, payload: UtilityPayload) -> bytes:
        assert payload.voice is not None, "there is nothing to speak"
        ended = await trio.run_process(
            [self._program, "--stdin", "--stdout"],
            stdin=_PHONEMES.sub("[ ", payload.voice.text).encode(),
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if ended.returncode != 0 or not ended.stdout:
            raise VoiceError(f"{PROGRAM} ended with {ended.returncode} and said nothing that can be heard.")
        return _measured(ended.stdout)


def _measured(wav: bytes) -> bytes:
    """The file with its sizes in the header: a program that writes into a pipe cannot go back to fill them in."""
    if wav[:4] != b"RIFF" or wav[36:40] != b"data":
        return wav
    return b"".join((wav[:4], pack("<I", len(wav) - 8), wav[8:40], pack("<I", len(wav) - _HEADER_BYTES), wav[44:]))
