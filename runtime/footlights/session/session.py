"""A player's session, as a host holds it.

`begin_turn`, `cancel`, `finalize` and `heard` are plain calls: they decide now or raise, and never wait. Losing a
subscriber is not a cancel, and a cancel does not close the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve
from trio.lowlevel import enable_ki_protection

from footlights.decided import decision_document
from footlights.errors import InvalidCommand
from footlights.events import InterruptReason
from footlights.params import TurnParams
from footlights.stream.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights.modes import ModeDecision
    from footlights.session.core import SessionCore, SessionState, SessionStatistics
    from footlights.turn.commit_handle import CommitHandle


_PLAIN_TURN = TurnParams()


class InteractionSession:
    """One player's conversation. Made by `stage.start`. Two are equal if they are the same one, not only its name."""

    __slots__ = ("_core",)

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InteractionSession) and other._core is self._core

    def __hash__(self) -> int:
        return hash(self._core)

    @property
    def session_id(self) -> str:
        """The host's name for it, or the number that the stage gave it."""
        return self._core.session_id

    @property
    def state(self) -> SessionState:
        """Whether it takes turns."""
        return self._core.state

    @enable_ki_protection
    def begin_turn(self, said: str, params: TurnParams | None = None, *, decision: ModeDecision | None = None) -> str:
        """Accept what the player said and return the turn's id; `turn_accepted` is out when this returns.

        `decision` is what was decided about its mode: the turn is in that mode, and the ledger keeps the record.

        Raises:
            SessionClosed: the session, or its stage, takes no more turns.
            Busy: a limit is reached, or the busy rule is `reject` and a turn is open.
            TooLarge: the input is longer than `max_input_bytes`.
            InvalidCommand: the input is empty or no string, the parameters name what does not exist, or the decision
                cannot be kept.
        """
        params = _PLAIN_TURN if params is None else params
        if not isinstance(params, TurnParams):  # pyright: ignore[reportUnnecessaryIsInstance] - a host need not be typed
            raise InvalidCommand(f"params must be TurnParams, and not {type(params).__name__}.")
        if decision is None:
            return self._core.begin_turn(said, params)
        document = decision_document(decision)
        return self._core.begin_turn(said, evolve(params, mode=decision.mode), document)

    @enable_ki_protection
    def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        """Interrupt one turn, or every open one; return the ids of those that this call interrupted.

        A turn that is ending or has ended is left alone. Raises `UnknownTurn` for an id never given out.
        """
        return self._core.cancel(turn_id)

    def finalize(self, turn_id: str) -> CommitHandle:
        """A handle on the turn's commit. Turns commit by themselves; this only lets you wait for it."""
        return self._core.finalize(turn_id)

    @enable_ki_protection
    def heard(self, turn_id: str, seq: int) -> None:
        """Say that the player took the turn in up to this event. An interruption reports the text so far."""
        self._core.heard(turn_id, seq)

    def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = (), *, observer: bool = False
    ) -> Subscription:
        """A stream of this session's events, to be entered with `async with`.

        Without `after`: unfinished turns from their beginning, then live. With `after={turn_id: seq}`: every
        retained event with a greater seq, all of a retained turn not named, then live. `after={}`: everything
        retained. No event is skipped between the retained and the live ones, and none is repeated.

        A turn that `after` names and that is not retained any more, or ran before a restart, is answered from the
        ledger: by its terminal event, unless `terminal_seen` names it, and its commit_final. What it said is gone, and
        its turn_final says so. So is every turn that began after all that are named. There may be more to tell than
        `max_turns_per_subscriber`: then the stream ends with `Detached` (`overflow`), and goes on when you come back.
        A turn that you have seen whole stands at 1,000,000,001, as in `stream.cursor`; one of which you have seen the
        terminal event and not the commit_final is named in `terminal_seen`, as in `stream.terminal_seen`.

        An `observer` is no player: it takes no place of `max_subscribers`, but one of eight of its own, and whoever
        asks whether the session is followed does not count it.

        A session that is closed still answers those who come back with `after`. Entering the stream raises
        `UnknownTurn` for a turn that neither the session nor the ledger knows.
        """
        return Subscription(self._core, after, terminal_seen, observer=observer)

    async def close(self) -> None:
        """Interrupt what runs, wait until every turn is settled, end every stream. Idempotent.

        If the wait is cancelled, the session still closes by itself.
        """
        self._core.begin_close(InterruptReason.SESSION_CLOSED)
        await self._core.closed.wait()

    def statistics(self) -> SessionStatistics:
        """What is open, waiting and kept now."""
        return self._core.statistics()
