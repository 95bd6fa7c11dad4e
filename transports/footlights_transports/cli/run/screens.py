"""A run on plain paper, for pipes and files; and in a terminal, where a spinner moves when nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rich.cells import cell_len
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from footlights_transports.cli.play.rich import wrap
from footlights_transports.cli.run.view import Activity, Beat, Over, Plan, StepBegun, StepOver, SummedUp, Words, Working
from footlights_transports.views.dexi.pure.events import RunOutcome, StepOutcome

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console

    from footlights_transports.cli.run.view import Piece

_MARKS = {
    StepOutcome.COMPLETED: "✓",
    StepOutcome.FAILED: "✗",
    StepOutcome.CANCELED: "✗",
    StepOutcome.UNKNOWN: "?",
}
_STYLES = {
    StepOutcome.COMPLETED: "green",
    StepOutcome.FAILED: "bold red",
    StepOutcome.CANCELED: "yellow",
    StepOutcome.UNKNOWN: "yellow",
}
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Screen(Protocol):
    def show(self, piece: Piece) -> None: ...


def line_of(piece: Plan | StepBegun | Working | Activity | StepOver | SummedUp) -> str:
    """A piece that is a line by itself."""
    match piece:
        case Plan(text):
            return f"Plan: {text}"
        case StepBegun(label):
            return f"▸ {label}"
        case Working(text, aside):
            return f"    Working: {text}{_beside(aside)}"
        case Activity(text, aside):
            return f"    · {text}{_beside(aside)}"
        case StepOver(label, outcome, seconds):
            return f"  {_MARKS[outcome]} {label}: {outcome}, {seconds:.1f} s"
        case SummedUp(text):
            return f"Summary: {text}"


def _beside(aside: str | None) -> str:
    return "" if aside is None else f" ({aside})"


class PaperScreen:
    """Nothing is taken back, and a heartbeat leaves no trace."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._apart = Apart()

    def show(self, piece: Piece) -> None:
        match piece:
            case Beat():
                return
            case Words(text):
                self._out.write(self._apart.before_words(text) + text)
            case Over(RunOutcome.COMPLETED):  # the answer speaks for itself
                self._out.write(self._apart.after_all())
            case Over(outcome):
                self._out.write(f"{self._apart.before_line()}The run ended: {outcome}.\n")
            case _:
                self._out.write(f"{self._apart.before_line()}{line_of(piece)}\n")
        self._out.flush()


class TerminalScreen:
    """The answer in full brightness, what is done about it in the background."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._apart = Apart()
        self._column = 0
        self._frame = 0
        self._spins = False

    def show(self, piece: Piece) -> None:
        self._stop_spinner()
        match piece:
            case Beat(state):
                self._spin(state)
            case Words(text):
                self._write(self._apart.before_words(text))
                wrapped, self._column = wrap(text, self._column, self._console.width)
                self._write(wrapped)
            case Over(RunOutcome.COMPLETED):
                self._write(self._apart.after_all())
            case Over(outcome):
                self._end_words()
                self._write(f"The run ended: {outcome}.\n", "bold red")
            case _:
                self._end_words()
                self._write(f"{line_of(piece)}\n", _style_of(piece))

    def _write(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style), end="", soft_wrap=True)

    def _end_words(self) -> None:
        self._write(self._apart.before_line())
        self._column = 0

    def _spin(self, state: str) -> None:
        self._frame = (self._frame + 1) % len(_FRAMES)
        line = f"    {_FRAMES[self._frame]} {state}"
        self._spins = True
        self._write(line if cell_len(line) < self._console.width else _FRAMES[self._frame], "dim")

    def _stop_spinner(self) -> None:
        if self._spins:
            self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
            self._spins = False


class Apart:
    """Keeps the answer apart from what is said of the work: an empty line between them, each way."""

    def __init__(self) -> None:
        self._after_line = False
        self._after_words: str | None = None
        """What the words ended with."""

    def before_words(self, text: str) -> str:
        apart = "\n" if self._after_line else ""
        self._after_line = False
        self._after_words = text[-1:]
        return apart

    def before_line(self) -> str:
        words, self._after_words = self._after_words, None
        self._after_line = True
        if words is None:
            return ""
        return "\n" if words == "\n" else "\n\n"

    def after_all(self) -> str:
        return "" if self._after_words in (None, "\n") else "\n"


def _style_of(piece: Plan | StepBegun | Working | Activity | StepOver | SummedUp) -> str:
    match piece:
        case Plan() | StepBegun():
            return "bold"
        case StepOver(_, outcome, _):
            return _STYLES[outcome]
        case Working():
            return "dim italic"
        case _:
            return "dim"
