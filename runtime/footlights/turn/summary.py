"""Turn summary: how a settled turn ended, and where its time went. It holds nothing that was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.memory_claims import memory_claims

if TYPE_CHECKING:
    from footlights.stream.replay import Replay
    from footlights.turn.timeline import TurnPart
    from footlights.turn.turn import Turn


@frozen(kw_only=True)
class TurnSummary:
    """How a turn ended. Times are milliseconds of the clock that stamps the events."""

    session_id: str
    turn_id: str
    outcome: str
    """The outcome of its commit, or the reason of its interruption."""
    accepted_ms: int
    first_token_ms: int | None
    """None if there was no token."""
    terminal_ms: int
    committed_ms: int
    output_tokens: int | None
    """None if its model did not count them."""
    parts: tuple[TurnPart, ...] = ()
    """The parts of its time in their order. They have no gaps, and add up to the time from its acceptance to its
    commit."""
    memory_claims: tuple[str, ...] = ()
    """Which phrases in it claim to remember a chat: see `footlights.memory_claims`. They decide nothing."""


def summarize(turn: Turn) -> TurnSummary:
    """The summary of a settled turn."""
    replay = turn.replay
    return TurnSummary(
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        outcome=outcome_of(turn),
        accepted_ms=_stamp(replay, 0),
        first_token_ms=replay.first_delta_ms,
        terminal_ms=_stamp(replay, replay.next_seq - 2),
        committed_ms=_stamp(replay, replay.next_seq - 1),
        output_tokens=turn.output_tokens,
        parts=turn.parts,
        memory_claims=memory_claims(replay.text),
    )


def outcome_of(turn: Turn) -> str:
    """How a settled turn ended: the reason of its interruption, or the outcome of its commit."""
    if turn.interruption is not None:
        return turn.interruption.reason.value
    assert turn.commit is not None
    return turn.commit.commit_outcome.value


def _stamp(replay: Replay, seq: int) -> int:
    event = replay.event_after(seq - 1)
    assert event is not None
    return event.mono_ts_ms
