"""Turns and core events for the tests of a chat."""

from __future__ import annotations

from footlights import StreamEvent
from footlights.events import EVENT_TYPES, SCHEMA_V, CommitFinal, CommitOutcome, Payload
from footlights_transports.views.kgent.pure.record import Turn, TurnType


def turn(name: str, content: str = "words", *, at: float = 1.0, entropy: float = 0.1, sure: float = 0.95) -> Turn:
    return Turn(
        id=name,
        content=content,
        timestamp=at,
        source="kgent-soul",
        turn_type=TurnType.SPEECH,
        state_hash_pre="before",
        state_hash_post="after",
        confidence=sure,
        entropy_cost=entropy,
    )


def core(seq: int, payload: Payload, turn_id: str = "t1-000001") -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1-000001", turn_id, seq, seq, EVENT_TYPES[type(payload)], payload)


def committed(outcome: CommitOutcome = CommitOutcome.OK) -> CommitFinal:
    return CommitFinal("digest", outcome)
