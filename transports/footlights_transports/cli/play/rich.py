"""A play in a terminal: words wrapped as they come, a bar while a model loads, asides in the background."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from footlights_transports.cli.play.narration import Asked, Loading, Note, Piece, Speaker, Speech, SpeechEnd, Tone

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {Tone.ASIDE: "dim", Tone.GOOD: "green", Tone.BAD: "red"}
_WORD = re.compile(r"\s*\S+|\s+")


class RichScreen:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._column = 0
        self._bar: tuple[Progress, TaskID] | None = None

    def ask(self) -> None:
        self._write("> ", "bold cyan")

    def show(self, piece: Piece) -> None:
        if isinstance(piece, Loading):
            self._show_bar(piece)
            return
        self._remove_bar()
        match piece:
            case Asked():
                pass  # the terminal showed it while it was typed
            case Speaker(name):
                self._column = cell_len(name) + 2
                self._write(f"{name}: ", "bold")
            case Speech(text):
                wrapped, self._column = wrap(text, self._column, self._console.width)
                self._write(wrapped)
            case SpeechEnd():
                self._write("\n")
            case Note(tone, text):
                self._write(f"  {tone} {text}\n", _STYLES[tone])

    def leave(self) -> None:
        """Take the bar down, which would leave the cursor hidden, and end the line that nobody will."""
        self._remove_bar()
        self._write("\n")

    def _write(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style), end="", soft_wrap=True)

    def _show_bar(self, loading: Loading) -> None:
        if self._bar is None:
            # Refreshed by hand: a thread that draws would draw into the words.
            bar = Progress(
                TextColumn("  [dim]{task.description}"),
                BarColumn(),
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            bar.start()
            self._bar = bar, bar.add_task(f"{loading.model_id} is loading", total=1.0)
        bar, task = self._bar
        bar.update(task, completed=loading.progress or 0.0, refresh=True)

    def _remove_bar(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None


def wrap(text: str, column: int, width: int) -> tuple[str, int]:
    """The text as it continues a line that is `column` cells long, and how long the last line is then."""
    wrapped: list[str] = []
    for word in _WORD.findall(text):
        if column and column + cell_len(word.rstrip()) > width:
            word = "\n" + word.lstrip()
        wrapped.append(word)
        *broken, last = word.split("\n")
        column = cell_len(last) if broken else column + cell_len(last)
    return "".join(wrapped), column
