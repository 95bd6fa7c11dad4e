"""A witness: while it watches, every subscription of this process is recorded and held to the laws.

    with witness():
        trio.run(my_test)

The pytest plugin does this around every test, so that no author has to remember it. A subscriber that leaves is
judged at once, and `LawsBroken` is raised where it leaves; whoever never left is judged at the end. There it is raised
again, whoever caught it before: servers and stages outlive what fails in them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch
from weakref import WeakKeyDictionary

from attrs import Factory, define

from footlights import laws
from footlights.session.core import SessionCore, SessionState
from footlights.stream.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from footlights.events import StreamEvent
    from footlights.laws import Violation


class LawsBroken(AssertionError):
    """A stream was not lawful; `violations` says how."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("\n".join(str(violation) for violation in violations))
        self.violations = violations


@define(eq=False)
class Recording:
    """What one subscriber got."""

    after: Mapping[str, int] | None
    events: list[StreamEvent] = Factory(list["StreamEvent"])


@define(eq=False)
class Witness:
    """What was found so far. Made by `witness`."""

    judged: int = 0
    """Recordings judged so far."""
    violations: list[Violation] = Factory(list["Violation"])
    """What was wrong with them."""
    tolerated: bool = False
    """Set it in a test that breaks the laws on purpose; look at `violations` then."""
    _recordings: dict[Subscription, Recording] = Factory(dict["Subscription", "Recording"])
    _canceled: WeakKeyDictionary[object, set[str]] = Factory(WeakKeyDictionary["object", "set[str]"])
    """By session, and not by its id: a process may open many stages, and each numbers its sessions from one."""

    def saw(self, subscription: Subscription, event: StreamEvent) -> None:
        recording = self._recordings.get(subscription)
        if recording is None:
            recording = self._recordings[subscription] = Recording(subscription.after)
        recording.events.append(event)

    def saw_cancel(self, session: SessionCore, won: tuple[str, ...]) -> None:
        self._canceled.setdefault(session, set()).update(won)

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
    """Hold every stream that is read inside to the laws. Raises `LawsBroken`."""
    watching = Witness()
    take = Subscription._take  # pyright: ignore[reportPrivateUsage]
    leave = Subscription.__aexit__
    cancel = SessionCore.cancel

    def watched_take(self: Subscription) -> StreamEvent | None:
        event = take(self)
        if event is not None:
            watching.saw(self, event)
        return event

    async def watched_leave(self: Subscription, *error: Any) -> None:
        # Who ends its own stream has not heard everything; one that its session ended has.
        complete = self.is_exhausted and cast("SessionCore", self.host).state is not SessionState.OPEN
        await leave(self, *error)
        if error[0] is None:
            watching.judge(self, complete=complete)

    def watched_cancel(self: SessionCore, turn_id: str | None) -> tuple[str, ...]:
        won = cancel(self, turn_id)
        watching.saw_cancel(self, won)
        return won

    # Patched, and not offered by the runtime: an observer's seam there would be paid for by every event.
    with (
        patch.object(Subscription, "_take", watched_take),
        patch.object(Subscription, "__aexit__", watched_leave),
        patch.object(SessionCore, "cancel", watched_cancel),
    ):
        yield watching
        watching.close()
