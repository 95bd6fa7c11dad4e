"""Session core: a session's open turns in their order, the finished turns it retains, and its subscribers.

A plain object without a task. Turns report to it what becomes of them, subscriptions attach to it, the registry counts
what it holds, and the supervisor runs and commits its turns. Hosts hold an `InteractionSession` in front of it.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import frozen
from trio.lowlevel import current_clock, enable_ki_protection

from footlights import ids
from footlights.authority.record import commit_final
from footlights.checks import check_text
from footlights.errors import Busy, InvalidCommand, LedgerUnavailable, SessionClosed, TooLarge, UnknownTurn
from footlights.events import InterruptReason
from footlights.ids import epoch_and_number, in_order
from footlights.lazy_event import LazyEvent
from footlights.params import BusyRule, TurnParams
from footlights.session.begin_once import NONE_DROPPED, check_request_id, find_begun, with_dropped
from footlights.stream.catch_up import catch_up, never_committed
from footlights.stream.cursor import ALL_SEEN, newest_seen
from footlights.turn.commit_handle import CommitHandle
from footlights.turn.summary import summarize
from footlights.turn.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.events import CommitFinal, JsonValue, StreamEvent
    from footlights.stage.registry import SessionRegistry
    from footlights.stage.supervisor import Supervisor
    from footlights.stream.catch_up import CatchUp
    from footlights.stream.outbox import DetachReason, Outbox, OutboxStatistics
    from footlights.stream.subscription import Subscription
    from footlights.turn.lifecycle import TurnState
    from footlights.turn.summary import TurnSummary


_MAX_UNWRITTEN = 256
MAX_OBSERVERS = 8


class SessionState(StrEnum):
    """Whether a session takes turns."""

    OPEN = "open"
    """Turns may begin."""
    CLOSING = "closing"
    """No new turns; the open ones are being settled."""
    CLOSED = "closed"
    """Every turn is settled, and every stream has ended."""


@frozen
class SessionStatistics:
    """The turns and subscribers of one session, beside their limits."""

    session_id: str
    state: SessionState
    turns_by_state: Mapping[TurnState, int]
    turns_waiting: int
    max_queued_turns: int
    turns_retained: int
    replay_turns: int
    bytes_retained: int
    """Memory that the retained turns take, as it counts against the limits."""
    replay_bytes_per_session: int
    subscribers: tuple[OutboxStatistics, ...]
    """Without observers."""
    max_subscribers: int
    observers: tuple[OutboxStatistics, ...]


class SessionCore:
    __slots__ = (
        "__weakref__",
        "_bytes_retained",
        "_last_number",
        "_open",
        "_registry",
        "_retained",
        "_subscriptions",
        "_supervisor",
        "about",
        "clock",
        "closed",
        "dropped_requests",
        "epoch",
        "limits",
        "outboxes",
        "remote_models",
        "session_id",
        "state",
        "turns_dropped",
        "unwritten",
        "wall_clock",
    )

    def __init__(
        self,
        registry: SessionRegistry,
        supervisor: Supervisor,
        session_id: str,
        about: bytes,
        first_number: int,
        remote_models: bool,
    ) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self.session_id = session_id
        self.about = about
        self.remote_models = remote_models
        self.epoch = registry.epoch
        self.limits = registry.limits
        self.clock = registry.clock
        self.wall_clock = registry.wall_clock
        self.state = SessionState.OPEN
        self.outboxes: tuple[Outbox, ...] = ()
        self._subscriptions: dict[Outbox, Subscription] = {}
        self._last_number = first_number - 1
        self._open: dict[str, Turn] = {}
        self._retained: dict[str, Turn] = {}
        self._bytes_retained = 0
        self.turns_dropped = 0
        # The stage gives out s1-000001, and a server with users ann:s1-000001: in its own epoch such a session is new.
        is_new = ids.epoch_of_session(session_id.rpartition(":")[2]) == self.epoch
        self.dropped_requests: frozenset[int] | None = NONE_DROPPED if is_new else None
        self.unwritten: dict[str, CommitFinal] = {}
        """The commits of the last dropped turns that the ledger could not write."""
        self.closed = LazyEvent()

    # -- turns

    @enable_ki_protection
    def begin_turn(
        self,
        said: str,
        params: TurnParams,
        mode_decision: dict[str, JsonValue] | None = None,
        request_id: str | None = None,
    ) -> str:
        if self.state is not SessionState.OPEN:
            raise SessionClosed(f"The session {self.session_id} is {self.state}.")
        current_clock()  # raises RuntimeError in a thread of the host, before anything is changed
        self._check_input(said)
        self._registry.check_turn(params)
        self._check_places(params.busy)
        if params.busy is BusyRule.INTERRUPT:
            self._stop_open_turns(InterruptReason.BARGE_IN)
        number = self._last_number + 1
        cast, turn_id = self._supervisor.cast, ids.turn_id(self.epoch, number)
        turn = Turn(self, cast, self.session_id, turn_id, said, params, mode_decision, request_id)
        runs_now = not self._open or params.busy is BusyRule.CONCURRENT
        turns_ahead = 0 if runs_now else len(self._open)
        turn.accept(turns_ahead)
        self._last_number = number
        self._registry.turn_begun(number)
        self._open[turn.turn_id] = turn
        if runs_now:
            self._run(turn)
        return turn.turn_id

    async def begin_turn_once(
        self,
        said: str,
        params: TurnParams,
        mode_decision: dict[str, JsonValue] | None,
        request_id: str,
        admit: Callable[[], None] | None,
    ) -> str:
        check_request_id(request_id)
        self._check_input(said)
        turn_id = await find_begun(self, request_id, said, params)
        if turn_id is not None:
            return turn_id
        if admit is not None:
            admit()
        return self.begin_turn(said, params, mode_decision, request_id)

    @enable_ki_protection
    def cancel(self, turn_id: str | None) -> tuple[str, ...]:
        if turn_id is None:
            return self._stop_open_turns(InterruptReason.CANCELED)
        self.check_known(turn_id)
        turn = self._open.get(turn_id)
        return (turn_id,) if turn is not None and turn.stop(InterruptReason.CANCELED) else ()

    def finalize(self, turn_id: str) -> CommitHandle:
        self.check_known(turn_id)
        return CommitHandle(turn_id, self._find(turn_id), self._decided)

    def summary(self, turn_id: str) -> TurnSummary | None:
        self.check_known(turn_id)
        turn = self._retained.get(turn_id)
        return None if turn is None else summarize(turn)

    def events(self, turn_id: str) -> tuple[StreamEvent, ...]:
        self.check_known(turn_id)
        turn = self._find(turn_id)
        return () if turn is None else tuple(turn.replay.events())

    @enable_ki_protection
    def heard(self, turn_id: str, seq: int) -> None:
        self.check_known(turn_id)
        turn = self._find(turn_id)
        if turn is None:
            return
        if type(seq) is not int or not 0 <= seq < turn.replay.next_seq:
            raise InvalidCommand(f"{turn_id} has no event with seq {seq!r}.")
        turn.hear(seq)

    # -- subscribers

    @enable_ki_protection
    def attach(self, subscription: Subscription) -> None:
        """Deliver to this subscription, beginning with what is retained after its cursor."""
        if self.state is SessionState.CLOSED and subscription.after is None:
            raise SessionClosed(f"The session {self.session_id} is closed.")
        self._check_place_of(subscription)
        backlog = self._backlog(subscription.after)
        outbox = subscription.outbox
        for turn, seq in backlog:
            outbox.catch_up(turn.replay, seq)
        if subscription.after is None:
            # Turns that ended before it subscribed are not delivered, also not when it resumes.
            subscription.skip(self._retained)
        subscription.expect(turn.turn_id for turn, _ in backlog)
        if newest_seen(subscription.cursor) is None:
            subscription.skip([self._newest_dropped()])
        if self.state is SessionState.CLOSED:
            subscription.end()
            return
        self._subscriptions[outbox] = subscription
        self.outboxes = (*self.outboxes, outbox)

    async def catch_up(self, after: Mapping[str, int], terminal_seen: Collection[str]) -> CatchUp:
        """Read from the ledger the turns that this cursor lacks and that are not retained here."""
        return await catch_up(self, after, terminal_seen)

    def check_known(self, turn_id: str) -> None:
        """Raise `UnknownTurn` for an id that was never given out.

        Ids of earlier epochs all pass: nothing durable records which of them were given out.
        """
        check_text("A turn id", turn_id)
        if self.retains(turn_id):
            return
        given_out = epoch_and_number(turn_id)
        if given_out is None or not given_out[1] or given_out > (self.epoch, self._last_number):
            raise UnknownTurn(f"The session {self.session_id} has no turn {turn_id[:64]!r}.")

    async def find_commit(self, turn_id: str) -> CommitFinal | None:
        """The commit of a turn that is not retained, from the ledger or from `unwritten`."""
        if turn_id in self.unwritten:
            return self.unwritten[turn_id]
        record = await self._supervisor.ledger.find(self.session_id, turn_id)
        return None if record is None else commit_final(record)

    def find_request(self, request_id: str) -> Turn | None:
        turns = (*self._open.values(), *self._retained.values())
        return next(
            (turn for turn in turns if turn.request is not None and turn.request.request_id == request_id), None
        )

    async def read_request(self, request_id: str) -> str | None:
        return await self._supervisor.ledger.find_request(self.session_id, request_id)

    async def _decided(self, turn_id: str) -> CommitFinal | None:
        """Like `find_commit`; for a turn that a restart cut short, the commit_final that catch-up makes for it."""
        commit = await self.find_commit(turn_id)
        if commit is None and in_order(turn_id)[0] != self.epoch:
            return never_committed(self.session_id, turn_id)
        return commit

    async def commits_after(self, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        return await self._supervisor.ledger.commits_after(self.session_id, turn_id, limit)

    def is_open(self, turn_id: str) -> bool:
        """Whether the turn is not settled yet. Raises `UnknownTurn`."""
        self.check_known(turn_id)
        return turn_id in self._open

    def retains(self, turn_id: str) -> bool:
        """Whether the events of this turn are still here, for subscribers that resume."""
        return turn_id in self._open or turn_id in self._retained

    @property
    def latest(self) -> str:
        """The id that was given out last; before the first turn, the id with number 0."""
        return ids.turn_id(self.epoch, self._last_number)

    @property
    def open_turns(self) -> Iterable[Turn]:
        return self._open.values()

    @property
    def subscriptions(self) -> Iterable[Subscription]:
        return self._subscriptions.values()

    def retained(self) -> Iterable[str]:
        return (*self._retained, *self._open)

    def has_dropped_after(self, turn_id: str) -> bool:
        """Whether turns that began later, in this epoch or before a restart, are not retained."""
        epoch, number = in_order(turn_id)
        later = (ids.turn_id(self.epoch, each) for each in range(number + 1, self._last_number + 1))
        return epoch != self.epoch or not all(map(self.retains, later))

    @enable_ki_protection
    def remove(self, outbox: Outbox) -> None:
        """Deliver no more to this outbox: its subscription was left or detached."""
        if self._subscriptions.pop(outbox, None) is not None:
            outbox.close()
            self.outboxes = tuple(self._subscriptions)
            self._registry.subscriber_gone(outbox)

    # -- the end

    @enable_ki_protection
    def begin_close(self, reason: InterruptReason) -> None:
        if self.state is SessionState.OPEN:
            self.state = SessionState.CLOSING
            self._stop_open_turns(reason)
            self._close_if_settled()

    @enable_ki_protection
    def abandon(self, reason: DetachReason) -> None:
        """Close while commits are in doubt: detach every subscriber, to resume after a restart."""
        for turn in self._open.values():
            turn.lose_sight()
            self._registry.turn_in_doubt(turn)
        self._open.clear()
        for outbox in self.outboxes:
            outbox.detach(reason)
        self._close_if_settled()

    def drop_turns(self) -> None:
        """Drop every retained turn. Each holds its session, so that together they would keep each other alive."""
        while self._retained:
            self.drop_turn(next(iter(self._retained.values())))

    def drop_turn(self, turn: Turn) -> None:
        """Retain this turn no longer."""
        del self._retained[turn.turn_id]
        self._bytes_retained -= self._registry.retention.remove(turn)
        self.turns_dropped += 1
        if turn.request is not None:
            self.dropped_requests = with_dropped(self.dropped_requests, turn.request.request_id)
        if turn.commit is not None and any(issue.code == LedgerUnavailable.code for issue in turn.commit.issues):
            self.unwritten[turn.turn_id] = turn.commit
            if len(self.unwritten) > _MAX_UNWRITTEN:
                del self.unwritten[next(iter(self.unwritten))]

    def statistics(self) -> SessionStatistics:
        observers = self._observers()
        return SessionStatistics(
            session_id=self.session_id,
            state=self.state,
            turns_by_state=MappingProxyType(dict(Counter(turn.state for turn in self._open.values()))),
            turns_waiting=self._waiting_turns(),
            max_queued_turns=self.limits.max_queued_turns,
            turns_retained=len(self._retained),
            replay_turns=self.limits.replay_turns,
            bytes_retained=self._bytes_retained,
            replay_bytes_per_session=self.limits.replay_bytes_per_session,
            subscribers=tuple(outbox.statistics() for outbox in self.outboxes if outbox not in observers),
            max_subscribers=self.limits.max_subscribers,
            observers=tuple(outbox.statistics() for outbox in observers),
        )

    # -- called by turns

    def turn_stopping(self, turn: Turn) -> None:
        self._supervisor.give_grace(turn)

    def turn_ended(self, turn: Turn) -> None:
        self._supervisor.judge_turn(turn)

    def turn_settled(self, turn: Turn) -> None:
        del self._open[turn.turn_id]
        self._retain(turn)
        self._registry.turn_settled(turn)
        following = next(iter(self._open.values()), None)
        if following is not None and following.is_waiting:
            self._run(following)
        self._close_if_settled()

    # -- inside

    def _newest_dropped(self) -> str:
        """The newest id that is not retained: where a cursor begins that has seen nothing."""
        number = self._last_number
        while self.retains(turn_id := ids.turn_id(self.epoch, number)):
            number -= 1
        return turn_id

    def _check_place_of(self, subscription: Subscription) -> None:
        observers = len(self._observers())
        if subscription.observer and observers >= MAX_OBSERVERS:
            raise Busy(f"The session has {MAX_OBSERVERS} observers already.")
        if not subscription.observer and len(self.outboxes) - observers >= self.limits.max_subscribers:
            raise Busy(f"The session has {self.limits.max_subscribers} subscribers already (max_subscribers).")

    def _observers(self) -> list[Outbox]:
        return [outbox for outbox, subscription in self._subscriptions.items() if subscription.observer]

    def _check_input(self, said: str) -> None:
        check_text("The input", said)
        if not said.strip():
            raise InvalidCommand("The input is empty.")
        if _utf8_size(said) > self.limits.max_input_bytes:
            raise TooLarge(f"The input is longer than {self.limits.max_input_bytes} bytes (max_input_bytes).")

    def _check_places(self, busy: BusyRule) -> None:
        limits = self.limits
        # Counts turns that wait for their commit too: interrupting one turn after the other is limited as well.
        if len(self._open) > limits.max_queued_turns + limits.max_concurrent_turns:
            raise Busy("The session has too many turns that are not settled.")
        if not self._open or busy is BusyRule.INTERRUPT:
            return
        if busy is BusyRule.REJECT:
            raise Busy("A turn is open, and the busy rule is reject.")
        if busy is BusyRule.QUEUE and self._waiting_turns() >= limits.max_queued_turns:
            raise Busy(f"{limits.max_queued_turns} turns are waiting already (max_queued_turns).")
        if busy is BusyRule.CONCURRENT and self._running_turns() >= limits.max_concurrent_turns:
            raise Busy(f"{limits.max_concurrent_turns} turns are running already (max_concurrent_turns).")

    def _waiting_turns(self) -> int:
        return sum(turn.is_waiting for turn in self._open.values())

    def _running_turns(self) -> int:
        return sum(not turn.is_waiting and not turn.has_ended for turn in self._open.values())

    def _run(self, turn: Turn) -> None:
        turn.run()
        self._supervisor.run_turn(turn)

    def _stop_open_turns(self, reason: InterruptReason) -> tuple[str, ...]:
        return tuple(turn.turn_id for turn in list(self._open.values()) if turn.stop(reason))

    def _find(self, turn_id: str) -> Turn | None:
        return self._open.get(turn_id) or self._retained.get(turn_id)

    def _retain(self, turn: Turn) -> None:
        self._retained[turn.turn_id] = turn
        self._bytes_retained += self._registry.retention.add(self, turn)
        limits = self.limits
        while len(self._retained) > limits.replay_turns or self._bytes_retained > limits.replay_bytes_per_session:
            self.drop_turn(next(iter(self._retained.values())))

    def _backlog(self, after: Mapping[str, int] | None) -> list[tuple[Turn, int]]:
        if after is None:
            return [(turn, -1) for turn in self._open.values()]
        # In the order in which they began: see `footlights.stream.catch_up`.
        turns = sorted([*self._retained.values(), *self._open.values()], key=lambda turn: in_order(turn.turn_id))
        for turn in turns:
            seq = after.get(turn.turn_id, -1)
            if not (-1 <= seq < turn.replay.next_seq or seq == ALL_SEEN):
                raise InvalidCommand(f"{turn.turn_id} has no event with seq {seq!r}.")
        return [(turn, after.get(turn.turn_id, -1)) for turn in turns]

    def _close_if_settled(self) -> None:
        if self.state is SessionState.CLOSING and not self._open:
            self.state = SessionState.CLOSED
            for outbox, subscription in list(self._subscriptions.items()):
                self.remove(outbox)
                subscription.end()
            self._registry.session_closed(self)
            self.closed.set()


def _utf8_size(said: str) -> int:
    try:
        return len(said.encode())
    except UnicodeEncodeError:
        raise InvalidCommand("The input holds half of a surrogate pair; it is not valid Unicode.") from None
