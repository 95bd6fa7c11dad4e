"""What a returning subscriber is told of a turn that nobody here remembers.

The turn was settled long ago, or ran before a restart. What the ledger knows of it is all there is: how it ended and
its commit, or, if it has none, that the restart interrupted it. Its words are in no ledger, so a `turn_final` says
that they are forgotten. Such events stand at seq 1,000,000,000 and on, far above any that the turn itself had; the
gap before them is declared like any other. Their `mono_ts_ms` is the largest that there is: the clock that stamped
the turn may have ended with its process, and no other clock can be compared with it.
"""

from __future__ import annotations

from attrs import evolve

from footlights.authority.digest import digest
from footlights.authority.interruptions import interrupted_by
from footlights.events import (
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    InterruptReason,
    Issue,
    Payload,
    SeqRange,
    StreamEvent,
    TurnFinal,
    TurnInterrupted,
)
from footlights.wire import MAX_INTEGER

RESTART_SEQ = 1_000_000_000

RECALLED_MONO_MS = MAX_INTEGER

ALL_SEEN = RESTART_SEQ + 1
"""In a cursor: everything of this turn was taken, its commit_final too. Nothing can have a greater seq."""


def recalled(
    session_id: str, turn_id: str, commit: CommitFinal | None, *, after: int, terminal_seen: bool
) -> list[StreamEvent]:
    """What is left to be told after that seq. The first event declares what is missing before it."""
    story: list[tuple[int, Payload]] = [] if terminal_seen else [(RESTART_SEQ, _terminal(commit))]
    story.append((ALL_SEEN, commit or never_committed(session_id, turn_id)))
    events: list[StreamEvent] = []
    for seq, payload in story:
        if seq > after:
            missing = (SeqRange(after + 1, seq - 1),) if seq > after + 1 else ()
            told = evolve(payload, dropped_seq_ranges=missing)
            event_type = EVENT_TYPES[type(payload)]
            events.append(StreamEvent(SCHEMA_V, session_id, turn_id, seq, RECALLED_MONO_MS, event_type, told))
            after = seq
    return events


def _terminal(commit: CommitFinal | None) -> Payload:
    reason = InterruptReason.RUNTIME_RESTART if commit is None else interrupted_by(commit.issues)
    return TurnFinal("", text_forgotten=True) if reason is None else TurnInterrupted(reason)


def never_committed(session_id: str, turn_id: str) -> CommitFinal:
    """Told, and not chained: the ledger has nothing of the turn, and the same is told whenever somebody asks."""
    told = {"session_id": session_id, "turn_id": turn_id, "outcome": "fail_closed", "issue": "runtime_restart"}
    return CommitFinal(
        commit_digest=digest(told),
        commit_outcome=CommitOutcome.FAIL_CLOSED,
        issues=(Issue("runtime_restart", "The runtime restarted before the turn was committed."),),
    )
