"""Interaction session: one player's session, as a host holds it.

`begin_turn`, `cancel`, `finalize` and `heard` are plain calls: they decide now or raise, and never wait.
`begin_turn_once` is awaited, because it may have to read the ledger. Losing a subscriber does not cancel a turn, and a
cancel does not close the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve
from trio.lowlevel import enable_ki_protection

from footlights.errors import InvalidCommand
from footlights.events import InterruptReason
from footlights.modes.decision_document import decision_document
from footlights.params import TurnParams
from footlights.redaction.screen import shown
from footlights.speaker import Speaker
from footlights.stream.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from footlights.events import JsonValue, StreamEvent
    from footlights.modes import ModeDecision
    from footlights.session.core import SessionCore, SessionState, SessionStatistics
    from footlights.turn.commit_handle import CommitHandle
    from footlights.turn.summary import TurnSummary


_PLAIN_TURN = TurnParams()


class InteractionSession:
    """One player's conversation. Made by `stage.start`. Two objects are equal if they stand for the same session."""

    __slots__ = ("_core", "_is_covered")

    def __init__(self, core: SessionCore, *, is_covered: bool = False) -> None:
        self._core = core
        self._is_covered = is_covered

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InteractionSession) and other._core is self._core

    def __hash__(self) -> int:
        return hash(self._core)

    @property
    def covered(self) -> InteractionSession:
        """The same session, whose subscribers get no text that the cast's output filter hides."""
        return InteractionSession(self._core, is_covered=True)

    @property
    def session_id(self) -> str:
        """The name that the host gave it, or the id that the stage gave it."""
        return self._core.session_id

    @property
    def speaker(self) -> Speaker:
        """Its player, as the host describes it."""
        return Speaker(self._core.session_id, self._core.about)

    @property
    def state(self) -> SessionState:
        """Whether turns may begin."""
        return self._core.state

    @enable_ki_protection
    def begin_turn(self, said: str, params: TurnParams | None = None, *, decision: ModeDecision | None = None) -> str:
        """Accept what the player said and return the turn's id. `turn_accepted` is emitted before this returns.

        `decision` sets the mode of the turn, and the ledger keeps its record.

        Raises:
            SessionClosed: the session or its stage is closing.
            Busy: a limit is reached, or the busy rule is `reject` and a turn is open.
            TooLarge: the input is longer than `max_input_bytes`.
            InvalidCommand: the input is empty or not a string, the parameters name something unknown, or the decision
                cannot be recorded.
        """
        if params is None and decision is None:
            return self._core.begin_turn(said, _PLAIN_TURN)
        return self._core.begin_turn(said, *_decided(params, decision))

    async def begin_turn_once(
        self,
        said: str,
        params: TurnParams | None = None,
        *,
        request_id: str,
        decision: ModeDecision | None = None,
        admit: Callable[[], None] | None = None,
    ) -> str:
        """Like `begin_turn`, but a call with the same `request_id` returns the turn that an earlier call began.

        `request_id` is the caller's own, 1 to 128 printable characters, within this session. The turn is found while it
        is open or retained, and then in the ledger, also after a restart. A turn that left nothing in the ledger, no
        tool and no commit, may begin again after a restart. A repeated call begins nothing, interrupts nothing and is
        refused by no limit. A call that raises, or is cancelled, has begun nothing and does not use up the id.

        `admit` is called right before a new turn begins. If it raises, none does.

        Raises what `begin_turn` raises, and:
            InvalidCommand: `request_id` is malformed, or its turn is retained and has another input or other
                parameters. A `decision` is not compared. A turn that is only in the ledger is not compared.
            Busy: the ledger cannot be read now.
        """
        given, document = _decided(params, decision)
        return await self._core.begin_turn_once(said, given, document, request_id, admit)

    @enable_ki_protection
    def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        """Interrupt one turn, or every open one; return the ids of those that this call interrupted.

        It does nothing to a turn that is ending or has ended. Raises `UnknownTurn` for an id never given out.
        """
        return self._core.cancel(turn_id)

    def finalize(self, turn_id: str) -> CommitHandle:
        """A handle to wait for the turn's commit. Turns commit without it."""
        return self._core.finalize(turn_id)

    def summary(self, turn_id: str) -> TurnSummary | None:
        """How a turn ended, and where its time went; None if it is not settled, or not retained any more.

        Raises `UnknownTurn` for an id never given out.
        """
        return self._core.summary(turn_id)

    def events(self, turn_id: str) -> tuple[StreamEvent, ...]:
        """The events of a turn that is open or retained, runs of deltas joined; none of any other.

        Raises `UnknownTurn` for an id never given out.
        """
        events = self._core.events(turn_id)
        return tuple(map(shown, events)) if self._is_covered else events

    @enable_ki_protection
    def heard(self, turn_id: str, seq: int) -> None:
        """Record that the player took in the turn up to this event. `turn_interrupted` reports the text up to it."""
        self._core.heard(turn_id, seq)

    def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = (), *, observer: bool = False
    ) -> Subscription:
        """A stream of this session's events, to be entered with `async with`.

        Without `after`: open turns from their beginning, then live events. With `after={turn_id: seq}`: every
        retained event with a greater seq, all events of retained turns that are not named, then live events.
        `after={}`: everything retained. No event between the retained and the live ones is skipped or repeated.

        A turn that `after` names and that is not retained any more, or ran before a restart, comes from the ledger:
        its terminal event, unless `terminal_seen` names it, and its commit_final. The text is gone, and the turn_final
        says so. The same holds for every turn that began after all that are named. If these are more than
        `max_turns_per_subscriber`, the stream ends with `Detached` (`overflow`) after that many; subscribe again for
        the rest. A turn that was taken whole has 1,000,000,001 in `after`, as in `stream.cursor`; one whose terminal
        event was taken and whose commit_final was not is in `terminal_seen`, as in `stream.terminal_seen`.

        An `observer` is not a player: it does not count against `max_subscribers` (there may be eight observers), nor
        as a subscriber in statistics, by which idle sessions are found.

        A closed session still accepts subscribers with `after`. Entering the stream raises `UnknownTurn` for a turn
        that neither the session nor the ledger knows.
        """
        return Subscription(self._core, after, terminal_seen, observer=observer, is_covered=self._is_covered)

    async def close(self) -> None:
        """Interrupt every open turn, wait until all are settled, end every stream. Idempotent.

        If the wait is cancelled, the session closes all the same.
        """
        self._core.begin_close(InterruptReason.SESSION_CLOSED)
        await self._core.closed.wait()

    def statistics(self) -> SessionStatistics:
        """Count the turns and subscribers of this session."""
        return self._core.statistics()


def _decided(
    params: TurnParams | None, decision: ModeDecision | None
) -> tuple[TurnParams, dict[str, JsonValue] | None]:
    """The parameters with the mode of the decision, and its document."""
    params = _PLAIN_TURN if params is None else params
    if not isinstance(params, TurnParams):  # pyright: ignore[reportUnnecessaryIsInstance] - a host need not be typed
        raise InvalidCommand(f"params must be TurnParams, and not {type(params).__name__}.")
    if decision is None:
        return params, None
    document = decision_document(decision)
    return evolve(params, mode=decision.mode), document
