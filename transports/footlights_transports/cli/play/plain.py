"""A play on plain paper: no colours, no escape codes, nothing that is taken back. For pipes and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.cli.play.narration import Asked, Loading, Note, Piece, Speaker, Speech, SpeechEnd

if TYPE_CHECKING:
    from typing import TextIO


class PlainScreen:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def ask(self) -> None:
        """Nobody is there to be asked."""

    def show(self, piece: Piece) -> None:
        self._out.write(_written(piece))
        self._out.flush()

    def leave(self) -> None:
        """Nothing was put up that must be taken down."""


def _written(piece: Piece) -> str:
    match piece:
        case Asked(text):
            return f"> {text}\n"
        case Speaker(name):
            return f"{name}: "
        case Speech(text):
            return text
        case SpeechEnd():
            return "\n"
        case Note(tone, text):
            return f"  {tone} {text}\n"
        case Loading(model_id, progress):
            return f"  · {model_id} is loading …\n" if progress is None else ""
