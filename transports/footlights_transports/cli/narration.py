"""Narration of one turn for a player: events in, pieces of output out, no I/O.

The text of a turn is shown exactly once. If deltas are missing, it stops at the gap, and `turn_final` has the rest.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

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
from footlights.authority.approvals import PENDING
from footlights.authority.interruptions import TURN_INTERRUPTED
from footlights_transports.cli.screen import Line, Loading, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import StreamEvent
    from footlights.authority import Artifact, PatchOp
    from footlights_transports.cli.screen import Piece


class Tone(StrEnum):
    """The kind of a note; the value is its mark."""

    ASIDE = "·"
    GOOD = "✓"
    BAD = "✗"


CUT = "cut at the limit of tokens; more would have followed"
_STYLES = {Tone.ASIDE: "dim", Tone.GOOD: "green", Tone.BAD: "red"}


def note(tone: Tone, text: str) -> Line:
    return Line(f"  {tone} {text}", _STYLES[tone])


class Narration:
    """One turn, in the order of its events."""

    def __init__(self, speaker: str) -> None:
        self._speaker = speaker
        self._speaking = False
        self._told = 0

    def tell(self, event: StreamEvent) -> list[Piece]:
        match event.payload:
            case TokenDelta(delta=delta, offset=offset):
                return self._speech(delta, offset)
            case TurnFinal(text=text, cut=cut):
                return [*self._speech(text, 0), *self._stop_speaking(), *([note(Tone.ASIDE, CUT)] if cut else [])]
            case ModelLoading(model_id=model_id, progress=progress):
                return [*self._stop_speaking(), Loading(model_id, progress)]
            case ModelReady() as ready if ready.warm_state is not WarmState.HOT:
                return self._note(Tone.ASIDE, _readiness(ready))
            case ToolCallStarted(tool_name=tool_name):
                return self._note(Tone.ASIDE, f"{tool_name} …")
            case ToolCallResult() as result:
                return self._note(*_tool_outcome(result))
            case ModelSelected(model_id=model_id, error=ErrorInfo() as error):
                return self._note(Tone.ASIDE, f"{model_id} takes over: {_failure(error)}")
            case TurnInterrupted(reason=reason, error=error):
                return self._note(Tone.BAD, f"interrupted: {reason if error is None else _failure(error)}")
            case CommitFinal() as commit:
                return self._note(*_commit_outcome(commit))
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
    return Tone.ASIDE, f"{result.tool_name}: {result.summary or 'done'}"


def _commit_outcome(commit: CommitFinal) -> tuple[Tone, str]:
    name = commit.commit_id or commit.commit_digest[:16]
    if commit.commit_outcome is CommitOutcome.OK:
        return Tone.GOOD, f"committed {name}"
    issues = commit.issues[:1] if commit.issues[0].code == TURN_INTERRUPTED else commit.issues
    return Tone.BAD, f"fail_closed {name}: {' '.join(issue.message for issue in issues)}"


def tell_changes(changes: Sequence[PatchOp]) -> list[Piece]:
    """The changes that a commit made to the world."""
    return [note(Tone.ASIDE, ", ".join(map(_change, changes)))] if changes else []


def tell_approvals(artifacts: Sequence[Artifact]) -> list[Piece]:
    """Questions that wait for the player's approval, and how to answer them."""
    asked = [each.data for each in artifacts if each.kind == PENDING and isinstance(each.data, dict)]
    return [note(Tone.ASIDE, f"{it['question']} Answer /yes {it['id']} or /no {it['id']}") for it in asked]


def _change(change: PatchOp) -> str:
    if change.op in ("add", "replace"):
        return f"{change.path} = {json.dumps(change.value, ensure_ascii=False)}"
    return f"{change.op} {change.path}"
