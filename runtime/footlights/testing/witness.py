"""Witness: records every subscription of this process, and checks it against the laws. It also checks that the times of
every turn add up.

    with witness():
        trio.run(my_test)

The pytest plugin does this in every test. A subscription is judged when it closes, and `LawsBroken` is raised there; a
subscription that never closes is judged at the end of the block. At the end `LawsBroken` is raised again even if it was
caught before, because servers and stages contain failures.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch
from weakref import WeakKeyDictionary

from attrs import Factory, define

from footlights import laws
from footlights.laws import Violation
from footlights.session.core import SessionCore, SessionState
from footlights.stream.subscription import Subscription
from footlights.turn.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from footlights.events import CommitFinal, StreamEvent
    from footlights.turn.timeline import CommitTimes


class LawsBroken(AssertionError):
    """A stream broke the laws; see `violations`."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("\n".join(str(violation) for violation in violations))
        self.violations = violations


@define(eq=False)
class Recording:
    """The events of one subscriber."""

    after: Mapping[str, int] | None
    events: list[StreamEvent] = Factory(list["StreamEvent"])


@define(eq=False)
class Witness:
    """The findings so far. Made by `witness`."""

    judged: int = 0
    """Recordings judged so far."""
    timed: int = 0
    """Settled turns whose times were added up so far."""
    violations: list[Violation] = Factory(list["Violation"])
    """The violations in them."""
    tolerated: bool = False
    """Set in a test that breaks the laws on purpose and inspects `violations` itself."""
    _recordings: dict[Subscription, Recording] = Factory(dict["Subscription", "Recording"])
    _canceled: WeakKeyDictionary[object, set[str]] = Factory(WeakKeyDictionary["object", "set[str]"])
    """By session object, not by id: a process may open many stages, and each numbers its sessions from one."""

    def saw(self, subscription: Subscription, event: StreamEvent) -> None:
        recording = self._recordings.get(subscription)
        if recording is None:
            recording = self._recordings[subscription] = Recording(subscription.after)
        recording.events.append(event)

    def saw_cancel(self, session: SessionCore, won: tuple[str, ...]) -> None:
        self._canceled.setdefault(session, set()).update(won)

    def saw_settled(self, turn: Turn) -> None:
        """The parts of a turn's time add up to the time between its first and its last event, and none is negative.

        Events have whole milliseconds.
        """
        self.timed += 1
        took = [each.took_us for each in turn.parts]
        first, *_, last = turn.replay.events()
        whole_ms = last.mono_ts_ms - first.mono_ts_ms
        if min(took) < 0 or abs(sum(took) - whole_ms * 1000) > 1000:
            sentence = f"the parts {took} do not add up to {whole_ms} ms"
            self.violations.append(Violation("latency_parts", turn.session_id, turn.turn_id, last.seq, sentence))

    def judge(self, subscription: Subscription, *, complete: bool) -> None:
        recording = self._recordings.pop(subscription, None)
        if recording is None:
            return
        canceled = self._canceled.get(subscription.host, set())
        found = laws.check(recording.events, after=recording.after, canceled=canceled, complete=complete)
        self.judged += 1
        self.violations += found
        if found and not self.tolerated:
            raise LawsBroken(found)

    def close(self) -> None:
        for subscription in list(self._recordings):
            self.judge(subscription, complete=False)
        if self.violations and not self.tolerated:
            raise LawsBroken(self.violations)


@contextmanager
def witness() -> Generator[Witness]:
    """Check every stream that is read inside against the laws. Raises `LawsBroken`."""
    watching = Witness()
    take = Subscription._take  # pyright: ignore[reportPrivateUsage]
    leave = Subscription.__aexit__
    cancel = SessionCore.cancel
    settle = Turn.settle

    def watched_take(self: Subscription) -> StreamEvent | None:
        event = take(self)
        if event is not None:
            watching.saw(self, event)
        return event

    async def watched_leave(self: Subscription, *error: Any) -> None:
        # A stream is complete if its session ended it, not if the subscriber left.
        complete = self.is_exhausted and cast("SessionCore", self.host).state is not SessionState.OPEN
        await leave(self, *error)
        if error[0] is None:
            watching.judge(self, complete=complete)

    def watched_cancel(self: SessionCore, turn_id: str | None) -> tuple[str, ...]:
        won = cancel(self, turn_id)
        watching.saw_cancel(self, won)
        return won

    def watched_settle(self: Turn, commit: CommitFinal, times: CommitTimes) -> None:
        settle(self, commit, times)
        # Not a part of what a profile measures.
        profile = sys.getprofile()
        sys.setprofile(None)
        watching.saw_settled(self)
        sys.setprofile(profile)

    # Patched rather than a hook in the runtime, which would cost time for every event.
    with (
        patch.object(Subscription, "_take", watched_take),
        patch.object(Subscription, "__aexit__", watched_leave),
        patch.object(SessionCore, "cancel", watched_cancel),
        patch.object(Turn, "settle", watched_settle),
    ):
        yield watching
        watching.close()
