"""Screens of `footlights play` and `footlights run`: pieces of output in, text in a terminal or a plain file out.

Every piece is printable: control characters from a model or a tool never reach a terminal, and none of their text
turns the direction of what follows it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen
from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.progress_bar import ProgressBar
from rich.segment import ControlType
from rich.text import Text

from footlights_transports.cli.wrapping import Wrapping, wrapped

if TYPE_CHECKING:
    from typing import TextIO

_BIDIRECTIONAL = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the direction of all text up to another one, or to the end of the line."""
_REPLACED = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *_BIDIRECTIONAL), "\N{REPLACEMENT CHARACTER}"),
    ord("\t"): " ",
    ord("\n"): "\n",
}
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BAR_CELLS = 40


def printable(text: str) -> str:
    return text.translate(_REPLACED)


def one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


@frozen
class Line:
    """A line of its own. A style is one of rich's, and plain text ignores it."""

    text: str = field(converter=one_line)
    style: str = ""


@frozen
class Words:
    """Text that continues the words before it."""

    text: str = field(converter=printable)
    style: str = ""


@frozen
class EndWords:
    """The line of words ends here, if it has not ended yet."""


@frozen
class Typed:
    """What the player typed. A terminal shows it already."""

    text: str = field(converter=one_line)


@frozen
class Loading:
    """Progress of a model that loads, shown until the next piece. Without `progress` it has only begun."""

    model_id: str = field(converter=one_line)
    progress: float | None


@frozen
class Spinner:
    """Activity without content: a terminal shows a spinner until the next piece."""

    text: str = field(converter=one_line)


Piece: TypeAlias = Line | Words | EndWords | Typed | Loading | Spinner


class Screen:
    """Separates words from lines; `spaced` puts an empty line between them. What is written where, subclasses say."""

    def __init__(self, *, spaced: bool = False) -> None:
        self._gap = "\n" if spaced else ""
        self._after_line = False
        self._words_end: str | None = None
        """The last character of the words that were shown, if no line followed them."""

    def leave(self) -> None:
        """Clean up; the program ends."""

    def show(self, piece: Piece) -> None:
        match piece:
            case Words(text, style):
                if self._after_line:
                    self._write(self._gap)
                self._after_line, self._words_end = False, text[-1:]
                self._write_words(text, style)
            case Line(text, style):
                if self._end_words():
                    self._write(self._gap)
                self._after_line = True
                self._write(f"{text}\n", style)
            case EndWords():
                self._end_words()
            case _:
                self._show_extra(piece)

    def _end_words(self) -> bool:
        """Whether there were any."""
        end, self._words_end = self._words_end, None
        if end not in (None, "\n"):
            self._write("\n")
        return end is not None

    def _write(self, text: str, style: str = "") -> None:
        raise NotImplementedError

    def _write_words(self, text: str, style: str) -> None:
        self._write(text, style)

    def _show_extra(self, piece: Typed | Loading | Spinner) -> None:
        """Show what does not look alike everywhere."""


class PlainScreen(Screen):
    """Plain text for pipes and files: no colours, no escape codes, nothing is erased."""

    def __init__(self, out: TextIO, *, spaced: bool = False) -> None:
        super().__init__(spaced=spaced)
        self._out = out

    def show(self, piece: Piece) -> None:
        super().show(piece)
        self._out.flush()

    def _write(self, text: str, style: str = "") -> None:
        self._out.write(text)

    def _show_extra(self, piece: Typed | Loading | Spinner) -> None:
        match piece:
            case Typed(text):
                self._write(f"> {text}\n")
            case Loading(model_id, None):
                self._write(f"  · {model_id} is loading …\n")
            case _:
                pass


class TerminalScreen(Screen):
    """Wraps words as they come, and shows a bar or a spinner until the next piece replaces it."""

    def __init__(self, console: Console, *, spaced: bool = False) -> None:
        super().__init__(spaced=spaced)
        self._console = console
        self._wrapping = Wrapping()
        self._style = ""
        self._frame = 0
        self._has_status = False

    def leave(self) -> None:
        self._erase_status()

    def show(self, piece: Piece) -> None:
        self._erase_status()
        super().show(piece)

    def _write(self, text: str, style: str = "") -> None:
        self._flush()
        self._print(wrapped(text, self._console.width), style)
        self._wrapping = Wrapping()  # all but words ends its line

    def _write_words(self, text: str, style: str) -> None:
        if style != self._style:
            self._flush()
            self._style = style
        self._print(self._wrapping.add(text, self._console.width), style)

    def _flush(self) -> None:
        """Write the word that waits for its end."""
        self._print(self._wrapping.flush(self._console.width), self._style)

    def _print(self, text: str, style: str = "") -> None:
        if text:
            self._console.print(Text(text, style), end="", soft_wrap=True)

    def _show_extra(self, piece: Typed | Loading | Spinner) -> None:
        match piece:
            case Typed():
                return
            case Loading(model_id, progress):
                label = Text(f"  {model_id} is loading ", "dim")
                label.truncate(self._console.width - 1)
                self._console.print(label, end="")
                if (room := self._console.width - label.cell_len - 1) > 0:
                    bar = ProgressBar(total=1.0, completed=progress or 0.0, width=min(_BAR_CELLS, room))
                    self._console.print(bar, end="")
            case Spinner(text):
                self._frame = (self._frame + 1) % len(_FRAMES)
                line = f"    {_FRAMES[self._frame]} {text}"
                self._print(line if cell_len(line) < self._console.width else _FRAMES[self._frame], "dim")
        self._has_status = True

    def _erase_status(self) -> None:
        if self._has_status:
            self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
            self._has_status = False


def is_terminal() -> bool:
    """Whether both standard input and standard output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def standard_screen(*, spaced: bool = False) -> Screen:
    """The screen for standard output."""
    if is_terminal():
        return TerminalScreen(Console(highlight=False), spaced=spaced)
    return PlainScreen(sys.stdout, spaced=spaced)
