"""View of one turn in the terminal: events in, pieces of output out, no I/O.

The text of a turn is shown exactly once. If deltas are missing, it stops at the gap, and `turn_final` has the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    ModelLoading,
    ModelReady,
    ModelSelected,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.authority.approval_news import ApprovalState, approval_news
from footlights.authority.pending import APPROVALS
from footlights_transports.cli.screen import Line, Loading, Words

if TYPE_CHECKING:
    from footlights import StreamEvent
    from footlights.authority import CommitRecord, PatchOp
    from footlights.events import Issue
    from footlights_transports.cli.screen import Piece


class Tone(StrEnum):
    """The kind of a note; the value is its mark."""

    ASIDE = "·"
    GOOD = "✓"
    BAD = "✗"


SAID_NOTHING = "(said nothing)"
CUT = "cut at the limit of tokens; more would have followed"
_RULE_FAILED = {"rule_error", "rule_overran", "ruling_too_large"}
"""The codes of issues whose `ref` is a rule that their message does not name."""
_STYLES = {Tone.ASIDE: "dim", Tone.GOOD: "green", Tone.BAD: "red"}


def note(tone: Tone, text: str) -> Line:
    return Line(f"  {tone} {text}", _STYLES[tone])


class Narration:
    """One turn, in the order of its events."""

    def __init__(self, speaker: str) -> None:
        self._speaker = speaker
        self._speaking = False
        self._told = 0
        self._was_interrupted = False

    def tell(self, event: StreamEvent) -> list[Piece]:
        match event.payload:
            case TokenDelta(delta=delta, offset=offset):
                return self._speech(delta, offset)
            case TurnFinal(text=text, cut=cut, text_forgotten=forgotten):
                speech = [*self._speech(text, 0), *self._stop_speaking()]
                remark = CUT if cut else "" if text.strip() or forgotten else SAID_NOTHING
                return [*speech, *([note(Tone.ASIDE, remark)] if remark else [])]
            case ModelLoading(model_id=model_id, progress=progress):
                return [*self._stop_speaking(), Loading(model_id, progress)]
            # A warm start of a model on a server only prepares the client: it does not show that the server answers.
            case ModelReady() as ready if ready.warm_state is WarmState.COLD:
                return self._note(Tone.ASIDE, _readiness(ready))
            case ToolCallStarted(tool_name=tool_name):
                return self._note(Tone.ASIDE, f"{tool_name} …")
            case ToolCallResult() as result:
                return self._note(*_tool_outcome(result))
            case ModelSelected(model_id=model_id, error=ErrorInfo() as error):
                return self._note(Tone.ASIDE, f"{model_id} takes over: {_failure(error)}")
            case TurnInterrupted(reason=reason, error=error):
                self._was_interrupted = True
                return self._note(Tone.BAD, f"interrupted: {reason if error is None else _failure(error)}")
            case CommitFinal() as commit:
                return self._note(*_commit_outcome(commit, said_why=self._was_interrupted))
            case _:
                return []

    def _speech(self, text: str, offset: int) -> list[Piece]:
        if offset > self._told:
            return []
        fresh = text[self._told - offset :]
        self._told += len(fresh)
        if self._speaking:
            return [Words(fresh)] if fresh else []
        fresh = fresh.lstrip()
        if not fresh:
            return []
        self._speaking = True
        return [Words(f"{self._speaker}: ", "bold"), Words(fresh)]

    def _stop_speaking(self) -> list[Piece]:
        if not self._speaking:
            return []
        self._speaking = False
        return [Words("\n")]

    def _note(self, tone: Tone, text: str) -> list[Piece]:
        return [*self._stop_speaking(), note(tone, text)]


def _failure(error: ErrorInfo) -> str:
    return f"{error.code}: {error.message}"


def _readiness(ready: ModelReady) -> str:
    return f"{ready.model_id} is ready after a {ready.warm_state} start of {ready.load_ms / 1000:.1f} s"


def _tool_outcome(result: ToolCallResult) -> tuple[Tone, str]:
    if result.canceled:
        effects = ", and may have had side effects" if result.side_effects_may_have_occurred else ""
        return Tone.BAD, f"{result.tool_name}: canceled{effects}"
    if result.error is not None:
        return Tone.BAD, f"{result.tool_name}: {result.error.message}"
    if result.awaits_approval:
        return Tone.ASIDE, f"{result.tool_name}: waits for approval"
    return Tone.ASIDE, f"{result.tool_name}: {result.summary or 'done'}"


def _commit_outcome(commit: CommitFinal, *, said_why: bool) -> tuple[Tone, str]:
    name = commit.commit_id or commit.commit_digest[:16]
    if commit.commit_outcome is CommitOutcome.OK:
        return Tone.GOOD, f"committed {name}"
    why = "" if said_why else f": {' '.join(map(because, commit.issues))}"
    return Tone.BAD, f"nothing changed (fail_closed {name}){why}"


def because(issue: Issue) -> str:
    """The message of an issue, with the rule that failed if it does not name it."""
    return f"the rule {issue.ref}: {issue.message}" if issue.code in _RULE_FAILED else issue.message


# -- what a commit did


def tell_changes(record: CommitRecord) -> list[Piece]:
    """The changes that a commit made to the world, without those that keep its approvals."""
    if record.outcome is not CommitOutcome.OK:
        return []  # its line has said that nothing changed
    return [note(Tone.ASIDE, _changes(record) or "nothing changed")]


def with_changes(told: list[Piece], record: CommitRecord) -> list[Piece]:
    """What is told of a commit, and what it changed. If that is nothing, its line says so."""
    if record.outcome is not CommitOutcome.OK or _changes(record):
        return [*told, *tell_changes(record)]
    *before, last = told
    assert isinstance(last, Line), "a commit has a line"
    return [*before, Line(f"{last.text}: nothing changed", last.style)]


def _changes(record: CommitRecord) -> str:
    return "; ".join(_change(each) for each in record.changes if each.path.split("/")[1:2] != [APPROVALS])


def questions(commit: CommitFinal) -> list[tuple[str, str]]:
    """The approvals that the commit asks for: the id and the question of each."""
    return [(each.id, each.question) for each in approval_news(commit) if each.state is ApprovalState.PENDING]


def _change(change: PatchOp) -> str:
    place = in_words(change.path)
    match change.op:
        case "add" | "replace":
            return f"{place}: {plain(change.value)}"
        case "remove":
            return f"{place}: gone"
        case _:
            return f"{place}: {change.op}"


def in_words(pointer: str) -> str:
    """A place in the world, for people."""
    names = [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]
    return ", ".join("new" if name == "-" else name for name in names) or "the world"


def plain(value: object) -> str:
    """A value of the world in one line, for people."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case Mapping():
            table = cast("Mapping[str, object]", value)
            return ", ".join(f"{name}: {plain(each)}" for name, each in table.items()) or "empty"
        case Sequence():
            return ", ".join(map(plain, cast("Sequence[object]", value))) or "none"
        case _:
            return str(value)
