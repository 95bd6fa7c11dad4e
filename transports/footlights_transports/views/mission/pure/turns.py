"""Turn callouts: the mission events of a session's turns.

The rules of the game raise events with a commit. All other texts are templates over ids, codes and closed sets; they
never quote a player or a model, and claim nothing that the stream event does not prove. So they are confirmed, and have
evidence. The question of an approval comes from the rules and is quoted whole: one that is too long breaks the
contract, and is not spoken. How a turn comes about is no news: a model that is loading is not called out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from footlights.authority.approval_news import ApprovalState, approval_news
from footlights.authority.artifacts import news_in
from footlights.events import CommitFinal, CommitOutcome, InterruptReason, ToolCallResult, TurnInterrupted
from footlights_transports.views.mission.pure.payload import MissionEvent
from footlights_transports.views.mission.pure.raised import RaisedEvent, raised
from footlights_transports.views.mission.pure.terms import Certainty, Classification, MissionEventType
from footlights_transports.views.mission.pure.text import compose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights.authority.approval_news import ApprovalNews
    from footlights.events import StreamEvent

_MAX_CODES = 3
_NOTHING_COMMITTED = "Nothing of it was committed."

_SURE = Certainty.CONFIRMED
_STATE_CHANGE = MissionEventType.STATE_CHANGE, Classification.INFO, _SURE
_LATE = MissionEventType.TIMER_UPDATE, Classification.WARN, _SURE
_WARNING = MissionEventType.THREAT_UPDATE, Classification.WARN, _SURE
_FAILURE = MissionEventType.THREAT_UPDATE, Classification.CRITICAL, _SURE
_ACTION = MissionEventType.ACTION_REQUIRED, Classification.ACTION, _SURE
_DEBRIEF = MissionEventType.DEBRIEF, Classification.INFO, _SURE

_FAILED: Mapping[InterruptReason, RaisedEvent] = {
    reason: RaisedEvent(*kind, change, _NOTHING_COMMITTED, next_action)
    for reason, kind, change, next_action in (
        (InterruptReason.TIMEOUT, _LATE, "A turn ran out of time.", "Ask again in a moment."),
        (InterruptReason.STALLED, _LATE, "A turn fell silent.", "Ask again in a moment."),
        (InterruptReason.MODEL_ERROR, _FAILURE, "A model failed.", "Look at the model now."),
        (InterruptReason.TOOL_ERROR, _FAILURE, "A tool crashed.", "Look at the tool now."),
        (InterruptReason.WORKLOAD_ERROR, _FAILURE, "A turn failed.", "Look at the log now."),
        (InterruptReason.SHUTDOWN, _WARNING, "The stage is closing.", "Come back when it is open."),
        (InterruptReason.RUNTIME_RESTART, _WARNING, "The stage has restarted.", "Ask again now."),
    )
}
"""Interruptions that are called out at once."""

_WANTED: Mapping[InterruptReason, str] = {
    InterruptReason.CANCELED: "The turn was canceled.",
    InterruptReason.BARGE_IN: "The turn was cut short.",
    InterruptReason.SESSION_CLOSED: "The session was closed.",
}
"""Interruptions that a person caused. Their debrief follows with the commit."""


class TurnCallouts:
    """The callouts of one session. The only state is the interrupt reason of each open turn."""

    def __init__(self, mission_id: str) -> None:
        self.mission_id = mission_id
        self._interrupted: dict[str, InterruptReason] = {}

    def take(self, event: StreamEvent) -> list[MissionEvent]:
        """The mission events for a stream event."""
        return [self._made(event, number, each) for number, each in enumerate(self._callouts(event))]

    def _callouts(self, event: StreamEvent) -> Iterator[RaisedEvent]:
        match event.payload:
            case ToolCallResult() as result:
                yield from _of_tool(result)
            case TurnInterrupted(reason=reason):
                self._interrupted[event.turn_id] = reason
                if reason in _FAILED:
                    yield _FAILED[reason]
            case CommitFinal() as commit:
                # Approvals first: they matter more, and the limits favour the first callout.
                yield from map(_of_approval, approval_news(commit))
                game = [each for each in map(raised, news_in(commit)) if each is not None]
                evidence = (f"commit:{commit.commit_id or commit.commit_digest}",)
                yield from (evolve(each, evidence=(*evidence, *each.evidence)) for each in game)
                interrupted = self._interrupted.pop(event.turn_id, None)
                if not game:  # it has told what the turn changed
                    yield from _of_commit(commit, interrupted, event.turn_id, evidence)
            case _:
                pass

    def _made(self, event: StreamEvent, number: int, callout: RaisedEvent) -> MissionEvent:
        refs = (f"turn:{event.turn_id}#{event.seq}", *callout.evidence)
        return MissionEvent(
            mission_id=self.mission_id,
            event_id=f"{event.turn_id}.{event.seq}" + (f".{number}" if number else ""),
            event_type=callout.event_type,
            classification=callout.classification,
            certainty=callout.certainty,
            text=compose(
                callout.event_type,
                callout.classification,
                change=callout.change,
                impact=callout.impact,
                next_action=callout.next_action,
                evidence_refs=refs,
            ),
            evidence_refs=refs,
            system_state_claim=True,
            operator_ref=callout.operator_ref,
        )


def _of_tool(result: ToolCallResult) -> Iterator[RaisedEvent]:
    if result.canceled and result.side_effects_may_have_occurred:
        change, next_action = "A tool was cut off while it worked.", "Look at what it did before you ask again."
        yield RaisedEvent(*_FAILURE, change, "It may have done its work.", next_action)
    elif result.error is not None and not result.canceled:
        yield RaisedEvent(*_WARNING, "A tool failed.", "It gave no result.", "Look at the tool before you ask again.")


def _of_commit(
    commit: CommitFinal, interrupted: InterruptReason | None, turn_id: str, evidence: tuple[str, ...]
) -> Iterator[RaisedEvent]:
    if interrupted is not None and interrupted in _WANTED:
        operator_ref = f"{interrupted.value}:{turn_id}"
        next_action = "Ask again when you like."
        words = _WANTED[interrupted], _NOTHING_COMMITTED, next_action
        yield RaisedEvent(*_DEBRIEF, *words, evidence=evidence, operator_ref=operator_ref)
    elif commit.commit_outcome is CommitOutcome.OK:
        states = {each.state for each in approval_news(commit)}
        waits = " An act waits for somebody's word." if ApprovalState.PENDING in states else ""
        refused = " An act was refused." if ApprovalState.DENIED in states else ""
        impact = f"Its changes are kept.{waits}{refused}"
        yield RaisedEvent(*_STATE_CHANGE, "A turn is committed.", impact, "Go on when you like.", evidence=evidence)
    elif interrupted is None:
        codes = ", ".join(issue.code for issue in commit.issues[:_MAX_CODES])
        more = len(commit.issues) - _MAX_CODES
        impact = f"Nothing of it was committed: {codes}{f' and {more} more' if more > 0 else ''}."
        next_action = "Ask for something else when you like."
        yield RaisedEvent(*_WARNING, "A turn was refused.", impact, next_action, evidence=evidence)


def _of_approval(news: ApprovalNews) -> RaisedEvent:
    approval = f"approval:{news.id}"
    if news.state is ApprovalState.PENDING:
        words = "Somebody has to decide.", news.question, "Answer yes or no now."
        return RaisedEvent(*_ACTION, *words, evidence=(approval,))
    change = "The answer was yes." if news.state is ApprovalState.APPROVED else "The answer was no."
    words = change, news.question, "Go on when you like."
    return RaisedEvent(*_DEBRIEF, *words, evidence=(approval,), operator_ref=approval)
