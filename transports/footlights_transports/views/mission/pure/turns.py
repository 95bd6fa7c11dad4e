"""The turns of a session as mission events: what a listener should know, in words that nobody said.

Everything is told by templates over ids, codes and closed sets. It is what the runtime itself saw, so it is confirmed
and has its evidence; what an event does not prove is not said. The questions of approvals are the rules' own words, and
are told whole: one that is too long for its line breaks the contract, and is not spoken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.authority.approvals import APPROVED, DENIED, PENDING
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    InterruptReason,
    ModelLoading,
    ToolCallResult,
    TurnInterrupted,
)
from footlights_transports.views.mission.pure.payload import MissionEvent
from footlights_transports.views.mission.pure.terms import Certainty, Classification, MissionEventType
from footlights_transports.views.mission.pure.text import compose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from footlights.authority.artifacts import Artifact
    from footlights.events import StreamEvent

_MAX_CODES = 3
_NOTHING_COMMITTED = "Nothing of it was committed."
_T, _C = MissionEventType, Classification


@frozen(kw_only=True)
class _Callout:
    """What is told of one thing that happened."""

    kind: tuple[MissionEventType, Classification]
    change: str
    impact: str
    next_action: str
    evidence: tuple[str, ...] = ()
    operator_ref: str | None = None


_CUT_OFF: Mapping[InterruptReason, _Callout] = {
    reason: _Callout(kind=kind, change=change, impact=_NOTHING_COMMITTED, next_action=next_action)
    for reason, kind, change, next_action in (
        (InterruptReason.TIMEOUT, (_T.TIMER_UPDATE, _C.WARN), "A turn ran out of time.", "Ask again in a moment."),
        (InterruptReason.STALLED, (_T.TIMER_UPDATE, _C.WARN), "A turn fell silent.", "Ask again in a moment."),
        (InterruptReason.MODEL_ERROR, (_T.THREAT_UPDATE, _C.CRITICAL), "A model failed.", "Look at the model now."),
        (InterruptReason.TOOL_ERROR, (_T.THREAT_UPDATE, _C.CRITICAL), "A tool crashed.", "Look at the tool now."),
        (InterruptReason.WORKLOAD_ERROR, (_T.THREAT_UPDATE, _C.CRITICAL), "A turn failed.", "Look at the log now."),
        (InterruptReason.SHUTDOWN, (_T.THREAT_UPDATE, _C.WARN), "The stage is closing.", "Come back when it is open."),
        (InterruptReason.RUNTIME_RESTART, (_T.THREAT_UPDATE, _C.WARN), "The stage has restarted.", "Ask again now."),
    )
}
"""What is told when a turn ends early without anybody wanting it."""

_WANTED: Mapping[InterruptReason, str] = {
    InterruptReason.CANCELED: "The turn was canceled.",
    InterruptReason.BARGE_IN: "The turn was cut short.",
    InterruptReason.SESSION_CLOSED: "The session was closed.",
}
"""What somebody did; it is told when what came of it is known."""


class TurnCallouts:
    """What there is to call out of one session. It remembers only which open turns somebody interrupted."""

    def __init__(self, mission_id: str) -> None:
        self.mission_id = mission_id
        self._interrupted: dict[str, InterruptReason] = {}

    def take(self, event: StreamEvent, artifacts: Sequence[Artifact] = ()) -> list[MissionEvent]:
        """What an event of the session calls for. `artifacts` are those of its commit."""
        return [self._made(event, number, each) for number, each in enumerate(self._callouts(event, artifacts))]

    def _callouts(self, event: StreamEvent, artifacts: Sequence[Artifact]) -> Iterator[_Callout]:
        payload = event.payload
        if isinstance(payload, ModelLoading):
            if payload.progress is None:
                yield _LOADING
        elif isinstance(payload, ToolCallResult):
            yield from _of_tool(payload)
        elif isinstance(payload, TurnInterrupted):
            self._interrupted[event.turn_id] = payload.reason
            if payload.reason in _CUT_OFF:
                yield _CUT_OFF[payload.reason]
        elif isinstance(payload, CommitFinal):
            # What was asked or answered is the greater news, and the limits favour what comes first.
            for artifact in artifacts:
                yield from _of_artifact(artifact)
            interrupted = self._interrupted.pop(event.turn_id, None)
            yield from _of_commit(payload, artifacts, interrupted, event.turn_id)

    def _made(self, event: StreamEvent, number: int, callout: _Callout) -> MissionEvent:
        refs = (f"turn:{event.turn_id}#{event.seq}", *callout.evidence)
        event_type, classification = callout.kind
        return MissionEvent(
            mission_id=self.mission_id,
            event_id=f"{event.turn_id}.{event.seq}" + (f".{number}" if number else ""),
            event_type=event_type,
            classification=classification,
            certainty=Certainty.CONFIRMED,
            text=compose(
                event_type,
                classification,
                change=callout.change,
                impact=callout.impact,
                next_action=callout.next_action,
                evidence_refs=refs,
            ),
            evidence_refs=refs,
            system_state_claim=True,
            operator_ref=callout.operator_ref,
        )


_LOADING = _Callout(
    kind=(_T.TIMER_UPDATE, _C.INFO),
    change="A model is loading.",
    impact="The answer will take a little longer.",
    next_action="Wait until it is ready.",
)


def _of_tool(result: ToolCallResult) -> Iterator[_Callout]:
    if result.canceled and result.side_effects_may_have_occurred:
        yield _Callout(
            kind=(_T.THREAT_UPDATE, _C.CRITICAL),
            change="A tool was cut off while it worked.",
            impact="It may have done its work.",
            next_action="Look at what it did before you ask again.",
        )
    elif result.error is not None and not result.canceled:
        yield _Callout(
            kind=(_T.THREAT_UPDATE, _C.WARN),
            change="A tool failed.",
            impact="It gave no result.",
            next_action="Look at the tool before you ask again.",
        )


def _of_commit(
    commit: CommitFinal, artifacts: Sequence[Artifact], interrupted: InterruptReason | None, turn_id: str
) -> Iterator[_Callout]:
    evidence = (f"commit:{commit.commit_id or commit.commit_digest}",)
    if interrupted is not None and interrupted in _WANTED:
        yield _Callout(
            kind=(_T.DEBRIEF, _C.INFO),
            change=_WANTED[interrupted],
            impact=_NOTHING_COMMITTED,
            next_action="Ask again when you like.",
            evidence=evidence,
            operator_ref=f"{interrupted.value}:{turn_id}",
        )
    elif commit.commit_outcome is CommitOutcome.OK:
        yield _Callout(
            kind=(_T.STATE_CHANGE, _C.INFO),
            change="A turn is committed.",
            impact=_kept(artifacts),
            next_action="Go on when you like.",
            evidence=evidence,
        )
    elif interrupted is None:
        codes = ", ".join(issue.code for issue in commit.issues[:_MAX_CODES])
        more = len(commit.issues) - _MAX_CODES
        codes += f" and {more} more" if more > 0 else ""
        yield _Callout(
            kind=(_T.THREAT_UPDATE, _C.WARN),
            change="A turn was refused.",
            impact=f"Nothing of it was committed: {codes}.",
            next_action="Ask for something else when you like.",
            evidence=evidence,
        )


def _kept(artifacts: Sequence[Artifact]) -> str:
    """What a commit proves: its changes, and that some acts are not among them."""
    kinds = {artifact.kind for artifact in artifacts}
    waits = " An act waits for somebody's word." if PENDING in kinds else ""
    refused = " An act was refused." if DENIED in kinds else ""
    return f"Its changes are kept.{waits}{refused}"


def _of_artifact(artifact: Artifact) -> Iterator[_Callout]:
    if artifact.kind not in (PENDING, APPROVED, DENIED):
        return
    approval_id, question = _approval(artifact)
    evidence = (f"approval:{approval_id}",)
    if artifact.kind == PENDING:
        yield _Callout(
            kind=(_T.ACTION_REQUIRED, _C.ACTION),
            change="Somebody has to decide.",
            impact=question,
            next_action="Answer yes or no now.",
            evidence=evidence,
        )
    else:
        yield _Callout(
            kind=(_T.DEBRIEF, _C.INFO),
            change="The answer was yes." if artifact.kind == APPROVED else "The answer was no.",
            impact=question,
            next_action="Go on when you like.",
            evidence=evidence,
            operator_ref=f"approval:{approval_id}",
        )


def _approval(artifact: Artifact) -> tuple[str, str]:
    data = artifact.data if isinstance(artifact.data, dict) else {}
    return str(data.get("id")), str(data.get("question"))
