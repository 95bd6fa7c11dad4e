"""What a person in front of a screen should be told about a turn: events in, pieces out, no I/O.

The text of a turn is told exactly once. If deltas are missing, telling stops at the hole, and `turn_final` fills in
the rest. Every piece is printable: a control character that a model or a tool came up with never reaches a terminal.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from footlights import (
    CommitFinal,
    CommitOutcome,
    ModelLoading,
    ModelReady,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.authority.approvals import PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import StreamEvent
    from footlights.authority import Artifact, PatchOp

_REPLACED = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "\N{REPLACEMENT CHARACTER}"),
    ord("\t"): " ",
    ord("\n"): "\n",
}


def printable(text: str) -> str:
    return text.translate(_REPLACED)


def one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


class Tone(StrEnum):
    """How a note is meant; the value is its mark where there are no colours."""

    ASIDE = "·"
    GOOD = "✓"
    BAD = "✗"


@frozen
class Asked:
    """What the player said."""

    text: str = field(converter=one_line)


@frozen
class Speaker:
    """Somebody begins to speak, on a new line."""

    name: str


@frozen
class Speech:
    """The next words of whoever speaks."""

    text: str = field(converter=printable)


@frozen
class SpeechEnd:
    """The line of speech ends here."""


@frozen
class Note:
    """A line of its own."""

    tone: Tone
    text: str = field(converter=one_line)


@frozen
class Loading:
    """To be seen until the next piece comes. Without progress it has only begun."""

    model_id: str
    progress: float | None


Piece: TypeAlias = Asked | Speaker | Speech | SpeechEnd | Note | Loading


class Narration:
    """One turn, told as it happens."""

    def __init__(self, speaker: str) -> None:
        self._speaker = speaker
        self._speaking = False
        self._told = 0

    def tell(self, event: StreamEvent) -> list[Piece]:
        match event.payload:
            case TokenDelta(delta=delta, offset=offset):
                return self._speech(delta, offset)
            case TurnFinal(text=text):
                return [*self._speech(text, 0), *self._stop_speaking()]
            case ModelLoading(model_id=model_id, progress=progress):
                return [*self._stop_speaking(), Loading(model_id, progress)]
            case ModelReady() as ready if ready.warm_state is not WarmState.HOT:
                return self._note(Tone.ASIDE, _readiness(ready))
            case ToolCallStarted(tool_name=tool_name):
                return self._note(Tone.ASIDE, f"{tool_name} …")
            case ToolCallResult() as result:
                return self._note(*_tool_outcome(result))
            case TurnInterrupted(reason=reason):
                return self._note(Tone.BAD, f"interrupted: {reason}")
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
            return [Speech(fresh)] if fresh else []
        fresh = fresh.lstrip()
        if not fresh:
            return []
        self._speaking = True
        return [Speaker(self._speaker), Speech(fresh)]

    def _stop_speaking(self) -> list[Piece]:
        if not self._speaking:
            return []
        self._speaking = False
        return [SpeechEnd()]

    def _note(self, tone: Tone, text: str) -> list[Piece]:
        return [*self._stop_speaking(), Note(tone, text)]


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
    return Tone.BAD, f"fail_closed {name}: {' '.join(issue.message for issue in commit.issues)}"


def tell_changes(changes: Sequence[PatchOp]) -> list[Piece]:
    """What a commit made true."""
    return [Note(Tone.ASIDE, ", ".join(map(_change, changes)))] if changes else []


def tell_approvals(artifacts: Sequence[Artifact]) -> list[Piece]:
    """What waits for the player's word, and how to give it."""
    asked = [each.data for each in artifacts if each.kind == PENDING and isinstance(each.data, dict)]
    return [Note(Tone.ASIDE, f"{it['question']} Answer /yes {it['id']} or /no {it['id']}") for it in asked]


def _change(change: PatchOp) -> str:
    if change.op in ("add", "replace"):
        return f"{change.path} = {json.dumps(change.value, ensure_ascii=False)}"
    return f"{change.op} {change.path}"
