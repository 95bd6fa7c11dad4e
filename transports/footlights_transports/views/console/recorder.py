"""Recorder of a console: the summaries of turns that were settled while a page was open.

It records from the first question of a page, and stops when no page has asked for a while. What it keeps is bounded,
and nothing of it was said by anybody.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from footlights.errors import UnknownSession, UnknownTurn
from footlights.turn.summary_json import summary_to_json

if TYPE_CHECKING:
    from footlights import OutboxStatistics, Stage

KEPT = 512
"""Turns."""
PATIENCE = 10.0
"""Seconds without a question after which nothing more is recorded."""


@frozen
class _Settled:
    number: int
    turn: dict[str, Any]


class Recorder:
    """The settled turns of one stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._settled: deque[_Settled] = deque(maxlen=KEPT)
        self.count = 0
        """Turns recorded so far. A page asks for those after the count that it has."""
        self._until = -1.0
        stage.call_when_settled(self._note)

    def after(self, count: int) -> list[dict[str, Any]]:
        """The turns after so many, as far as they are kept. Recording goes on for a while."""
        self._until = trio.current_time() + PATIENCE
        return [each.turn for each in self._settled if each.number > count]

    def _note(self, session_id: str, turn_id: str) -> None:
        if trio.current_time() > self._until:
            return
        try:
            session = self._stage.session(session_id)
            summary, commit = session.summary(turn_id), session.finalize(turn_id).commit
        except (UnknownSession, UnknownTurn):
            return  # a session that closes with its last turn
        if summary is None or commit is None:
            return
        self.count += 1
        turn = {
            **summary_to_json(summary),
            "commit_id": commit.commit_id,
            "commit_outcome": commit.commit_outcome.value,
            "issues": [{"code": each.code, "message": each.message, "ref": each.ref} for each in commit.issues],
            "subscribers": [subscriber_json(each) for each in session.statistics().subscribers],
        }
        self._settled.append(_Settled(self.count, turn))


def subscriber_json(outbox: OutboxStatistics) -> dict[str, int]:
    """The counts of one subscriber that a page shows."""
    return {
        "waiting": outbox.best_effort_waiting + outbox.bounded_waiting + outbox.must_deliver_waiting,
        "bytes": outbox.bytes_waiting,
        "joined": outbox.deltas_joined,
        "dropped": outbox.best_effort_dropped,
        "bounded_dropped": outbox.bounded_dropped,
    }
