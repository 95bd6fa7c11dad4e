"""The missions of a server: one who decides and speaks for all of them, and a board for each.

Whoever reads the board of a mission that has the name of one of its open sessions is told of that session's turns, from
then on. Nobody needs a board: none of this delays a turn, and all of it may be lost.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import evolve, frozen

from footlights.errors import Busy, FootlightsError, SessionClosed, UnknownSession
from footlights.failures import describe
from footlights.mission import Context, MissionEventType, compose
from footlights.mission.text import WHY_IT_MATTERS_CHARS, shorten
from footlights_actors.announcer import Announcement, Announcer
from footlights_actors.caller import Caller
from footlights_transports.mission_board import Acknowledgement, EventExists, MissionBoard

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights.mission import CalloutRequest, MissionEvent
    from footlights_actors.voice import Voice
    from footlights_transports.desk import FrontDesk
    from footlights_transports.gate import User
    from footlights_transports.mission_board import BoardEvent

MAX_BOARDS = 1_000
"""The one that was not used for longest goes."""
MAX_BYTES = 64_000_000
"""What all boards together may take."""
MAX_TENANTS_PER_USER = 64
"""Of one who has a token. Whoever needs no token is the only user."""
MAX_CALLERS = 100
"""Sessions whose turns are called out at once; the one whose board was not read for longest goes."""
UNREAD_SECONDS = 600.0
"""A session whose board nobody has read for so long is called out no more. So none is kept open by its board."""

_IMPACT_CHARS = WHY_IT_MATTERS_CHARS - len("IMPACT: ")

MissionName: TypeAlias = "tuple[User, str]"

log = logging.getLogger("footlights.mission")


@frozen(kw_only=True)
class MissionSettings:
    """What a host may choose."""

    voice: Voice | None = None
    """Who speaks; without one nothing is heard, and everything is decided all the same."""
    replay: bool = False
    """Whether requests say themselves at which time they are decided."""
    wall_clock: Callable[[], float] = time.time


class _Called:
    """A session that is called out."""

    def __init__(self) -> None:
        self.read_at = trio.current_time()
        self.context = Context()
        self.scope = trio.CancelScope()


class Missions:
    """All missions of one desk."""

    def __init__(self, desk: FrontDesk, settings: MissionSettings | None = None) -> None:
        settings = settings or MissionSettings()
        self._desk = desk
        self._replay = settings.replay
        self._ahead = settings.wall_clock() - trio.current_time()
        self._announcer = Announcer(self._now_ms, settings.voice)
        self._boards: OrderedDict[MissionName, MissionBoard] = OrderedDict()
        self._called: OrderedDict[MissionName, _Called] = OrderedDict()
        self._tenants: dict[User, set[str]] = {}
        self._numbered = 0
        self._last_seq = 0
        """No board that is forgotten came further."""
        self._nursery: trio.Nursery | None = None

    async def keep(self) -> None:
        """Call out sessions until cancelled; then every reader of a board is let go."""
        try:
            async with trio.open_nursery() as self._nursery:
                await trio.sleep_forever()
        finally:
            self._nursery = None
            for board in self._boards.values():
                board.end()

    def new_id(self, kind: str, board: MissionBoard | None = None) -> str:
        """A name for an event that came without one, and which the board does not have."""
        while True:
            self._numbered += 1
            name = f"{kind}-{self._numbered:06d}"
            if board is None or not board.has(name):
                return name

    # -- callouts

    async def speak(self, user: User, request: CalloutRequest) -> Announcement:
        """Decide about a callout, and speak it if it may be. A dry run speaks nothing and spends nothing.

        Raises `Busy` if the user has too many tenants.
        """
        context, at_ms = self._for_user(request.context, user), self._time_of(request)
        if request.dry_run:
            await trio.lowlevel.checkpoint()
            decision = self._announcer.consider(request.event, context, at_ms)
            return Announcement(payload=decision.payload, at_ms=self._now_ms() if at_ms is None else at_ms)
        return await self._announcer.announce(request.event, context, at_ms)

    async def add(self, user: User, request: CalloutRequest) -> BoardEvent:
        """Call an event out, and put it on its mission's board. Raises `EventExists`."""
        board = self.board(user, request.event.mission_id)
        board.check_new(request.event.event_id)
        event = board.add(await self.speak(user, request))
        self._make_room()
        return event

    async def acknowledge(
        self, user: User, board: MissionBoard, trigger: BoardEvent, request: CalloutRequest, operator_ref: str
    ) -> Acknowledgement:
        """Close an event, once: its debrief is called out, and put on the board. Again changes nothing.

        `request` says what came of it, and who listens.
        """
        if trigger.acknowledgement is not None:
            await trio.lowlevel.checkpoint()
            return trigger.acknowledgement
        at_ms = self._time_of(request)
        closed_ms = self._now_ms() if at_ms is None else at_ms
        acknowledgement = trigger.acknowledgement = Acknowledgement(
            operator_ref=operator_ref,
            debrief_event_id=self.new_id("debrief", board),
            closed_ms=closed_ms,
            trigger_to_debrief_closed_ms=max(0, closed_ms - trigger.at_ms),
        )
        debrief = _debrief(trigger, request.event, acknowledgement)
        board.add(await self.speak(user, evolve(request, event=debrief)), trigger.payload.event_id)
        self._make_room()
        return acknowledgement

    # -- boards

    def board(self, user: User, mission_id: str) -> MissionBoard:
        """The board of this mission of this user's, begun if it was not. Raises `SessionClosed`."""
        if self._nursery is None:
            raise SessionClosed("The server is closing.")
        name = (user, mission_id)
        if name not in self._boards:
            self._boards[name] = MissionBoard(last_seq=self._last_seq)
        self._boards.move_to_end(name)
        self._make_room()
        return self._boards[name]

    def read(self, user: User, mission_id: str, context: Context | None) -> MissionBoard:
        """The board, for one who reads it and, if there is a context, listens there. Raises `SessionClosed`."""
        board = self.board(user, mission_id)
        called = self._called_out(user, mission_id, board)
        if called is not None:
            called.read_at = trio.current_time()
            if context is not None:
                called.context = self._for_user(context, user)
        return board

    def attend(self, user: User, mission_id: str) -> None:
        """Somebody reads the board on."""
        if self._nursery is not None:
            self.read(user, mission_id, None)

    def _make_room(self) -> None:
        """Forget the boards that were not used for longest, if there are too many, or too much is on them."""
        while len(self._boards) > MAX_BOARDS or sum(board.size for board in self._boards.values()) > MAX_BYTES:
            name, oldest = self._boards.popitem(last=False)
            self._last_seq = max(self._last_seq, oldest.last_seq)
            oldest.end()
            if name in self._called:
                self._called[name].scope.cancel(reason="its board is forgotten")

    def _for_user(self, context: Context, user: User) -> Context:
        """Tenants of different users are different tenants. Raises `Busy`."""
        if user.name is None:
            return context
        tenants = self._tenants.setdefault(user, set())
        if context.tenant_id not in tenants and len(tenants) >= MAX_TENANTS_PER_USER:
            raise Busy(f"You have {MAX_TENANTS_PER_USER} tenants.")
        tenants.add(context.tenant_id)
        return evolve(context, tenant_id=f"{user.name}:{context.tenant_id}")

    def _called_out(self, user: User, mission_id: str, board: MissionBoard) -> _Called | None:
        """How the session of that name is called out, begun if it was not; None if there is no such session."""
        name = (user, mission_id)
        if name not in self._called:
            try:
                session = self._desk.session(user, mission_id)
            except UnknownSession:
                return None
            assert self._nursery is not None, "boards are read only while they are kept"
            self._called[name] = _Called()
            self._nursery.start_soon(self._call_out, name, session, board, name=f"callouts of {mission_id}")
            while len(self._called) > MAX_CALLERS:
                _, oldest = self._called.popitem(last=False)
                oldest.scope.cancel(reason="too many sessions are called out")
        self._called.move_to_end(name)
        return self._called[name]

    async def _call_out(self, name: MissionName, session: InteractionSession, board: MissionBoard) -> None:
        """The supervision boundary of the callouts of a session."""
        called = self._called[name]

        def tell(announcement: Announcement) -> None:
            with suppress(EventExists):  # told before, by a caller that ended while nobody read
                board.add(announcement)
                self._make_room()

        caller = Caller(session, self._announcer, lambda: called.context, tell, ledger=self._desk.stage.ledger)
        try:
            with called.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_until_unread, called)
                    await caller.run()
                    nursery.cancel_scope.cancel(reason="the session is closed")
        except* FootlightsError:  # no place for it, or closed meanwhile
            pass
        except* Exception as errors:  # noqa: BLE001 - whatever fails here is a board, and harms nothing
            log.error("the callouts of a session failed: %s", describe(errors))
        finally:
            if self._called.get(name) is called:
                del self._called[name]

    # -- time

    def _now_ms(self) -> int:
        return round((self._ahead + trio.current_time()) * 1_000)

    def _time_of(self, request: CalloutRequest) -> int | None:
        return request.policy_ts_ms if self._replay else None


async def _until_unread(called: _Called) -> None:
    while (patience := called.read_at + UNREAD_SECONDS) > trio.current_time():  # noqa: ASYNC110 - it grows meanwhile
        await trio.sleep_until(patience)
    called.scope.cancel(reason="nobody reads the board")


def _debrief(trigger: BoardEvent, outcome: MissionEvent, acknowledgement: Acknowledgement) -> MissionEvent:
    """It is no surer than what it closes."""
    told = trigger.payload
    text = compose(
        MissionEventType.DEBRIEF,
        told.classification,
        change="An operator has closed this.",
        impact=shorten(outcome.text.spoken, _IMPACT_CHARS) or outcome.text.spoken,
        evidence_refs=told.evidence_refs,
    )
    return evolve(
        outcome,
        mission_id=told.mission_id,
        event_id=acknowledgement.debrief_event_id,
        event_type=MissionEventType.DEBRIEF,
        classification=told.classification,
        certainty=told.certainty,
        evidence_refs=told.evidence_refs,
        operator_ref=acknowledgement.operator_ref,
        text=text,
    )
