"""The missions of a server: one who decides and speaks for all of them, and a board for each.

Whoever reads the board of a mission that has the name of one of its open sessions is told of that session's turns, from
then on. Nobody needs a board: none of this delays a turn, and all of it may be lost.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.errors import FootlightsError, SessionClosed, UnknownSession
from footlights.fair_share import first_of_the_heaviest
from footlights_transports.views.mission.announcer import Announcer
from footlights_transports.views.mission.board import Acknowledgement
from footlights_transports.views.mission.boards import Boards
from footlights_transports.views.mission.caller import Caller
from footlights_transports.views.mission.pure.payload import Context
from footlights_transports.views.mission.pure.requests import debrief_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.mission.announcer import Announcement, Callout
    from footlights_transports.views.mission.board import BoardEvent, MissionBoard
    from footlights_transports.views.mission.boards import MissionName
    from footlights_transports.views.mission.pure.requests import CalloutRequest, Closing
    from footlights_transports.views.mission.voice import Voice

MAX_CALLERS = 100
"""Sessions whose turns are called out at once. Of whoever has the most, the one not read for longest goes."""
UNREAD_SECONDS = 600.0
"""A session whose board nobody has read for so long is called out no more. So none is kept open by its board."""


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

    def __init__(self, context: Context) -> None:
        self.read_at = trio.current_time()
        self.context = context
        self.scope = trio.CancelScope()


class Missions:
    """All missions of one access."""

    def __init__(self, access: SessionAccess, settings: MissionSettings | None = None) -> None:
        settings = settings or MissionSettings()
        self._access = access
        self._replay = settings.replay
        self._ahead = settings.wall_clock() - trio.current_time()
        self._announcer = Announcer(self._now_ms, settings.voice)
        self._boards = Boards(self._forgotten)
        self._called: OrderedDict[MissionName, _Called] = OrderedDict()
        self._numbered = 0
        self._nursery: trio.Nursery | None = None

    async def keep(self) -> None:
        """Call out sessions until cancelled; then every reader of a board is let go."""
        try:
            async with trio.open_nursery() as self._nursery:
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._boards.end()

    def new_id(self, kind: str, board: MissionBoard | None = None) -> str:
        """A name for an event that came without one, and which the board does not have."""
        while True:
            self._numbered += 1
            name = f"{kind}-{self._numbered:06d}"
            if board is None or not board.has(name):
                return name

    # -- callouts

    async def speak(self, user: User, request: CalloutRequest) -> Announcement:
        """Decide about a callout, and speak it if it may be. A dry run speaks nothing and spends nothing."""
        context, at_ms = request.context.of_user(user.name), self._time_of(request.policy_ts_ms)
        if request.dry_run:
            await trio.lowlevel.checkpoint()
            return self._announcer.consider(request.event, context, at_ms)
        return await self._announcer.announce(request.event, context, at_ms)

    async def add(self, user: User, request: CalloutRequest) -> BoardEvent:
        """Put an event on its mission's board, and call it out. Raises `EventExists` and `SessionClosed`."""
        context = request.context.of_user(user.name)
        board = self.board(user, request.event.mission_id)
        board.check_new(request.event.event_id)
        callout = self._announcer.decide(request.event, context, self._time_of(request.policy_ts_ms))
        event = board.add(callout.announcement)
        await self._speak(board, event, callout)
        return event

    async def acknowledge(
        self, user: User, board: MissionBoard, trigger: BoardEvent, closing: Closing
    ) -> Acknowledgement:
        """Close an event, once: its debrief is put on the board, and called out. Again changes nothing."""
        if trigger.acknowledgement is not None:
            await trio.lowlevel.checkpoint()
            return trigger.acknowledgement
        context, at_ms = closing.context.of_user(user.name), self._time_of(closing.policy_ts_ms)
        closed = trigger.announcement.event
        debrief = debrief_of(closed, closing, self.new_id("debrief", board))
        callout = self._announcer.decide(debrief, context, at_ms)
        closed_ms = callout.announcement.at_ms
        event = board.add(callout.announcement, closed.event_id)
        trigger.acknowledgement = acknowledgement = Acknowledgement(
            debrief=event,
            closed_ms=closed_ms,
            trigger_to_debrief_closed_ms=max(0, closed_ms - trigger.at_ms),
        )
        await self._speak(board, event, callout)
        return acknowledgement

    async def _speak(self, board: MissionBoard, event: BoardEvent, callout: Callout) -> None:
        """Speak what is on the board already."""
        self._boards.make_room()
        try:
            await self._announcer.speak(callout)
        finally:
            if callout.announcement.is_amended:
                board.amend(event, callout.announcement)

    # -- boards

    def find(self, user: User, mission_id: str) -> MissionBoard | None:
        """The board of this mission of this user's, if there is one. Raises `SessionClosed`."""
        self._check_open()
        return self._boards.find((user, mission_id))

    def board(self, user: User, mission_id: str) -> MissionBoard:
        """The board of this mission of this user's, begun if it was not. Raises `SessionClosed`."""
        self._check_open()
        return self._boards.open((user, mission_id))

    def look(self, user: User, mission_id: str, context: Context | None) -> MissionBoard | None:
        """The board, for one who looks at it once. None is begun, except for an open session."""
        self._check_open()
        return self._read((user, mission_id), context) or self._boards.find((user, mission_id))

    def read(self, user: User, mission_id: str, context: Context | None) -> MissionBoard:
        """The board, for one who reads it and, if there is a context, listens there. Raises `SessionClosed`."""
        self._check_open()
        return self._read((user, mission_id), context) or self.board(user, mission_id)

    def attend(self, user: User, mission_id: str, context: Context | None = None) -> None:
        """Somebody reads the board on. The context counts if the session has to be called out anew."""
        if self._nursery is not None:
            self._called_out((user, mission_id), context)

    def _check_open(self) -> None:
        if self._nursery is None:
            raise SessionClosed("The server is closing.")

    def _read(self, name: MissionName, context: Context | None) -> MissionBoard | None:
        """The board of an open session, which is called out from now on."""
        called = self._called_out(name, context)
        if called is None:
            return None
        if context is not None:
            called.context = context.of_user(name[0].name)
        return self._boards.open(name)

    def _forgotten(self, name: MissionName) -> None:
        called = self._called.pop(name, None)
        if called is not None:
            called.scope.cancel(reason="its board is forgotten")

    def _called_out(self, name: MissionName, context: Context | None) -> _Called | None:
        """How the session of that name is called out, begun if it was not; None if there is no such session."""
        if name not in self._called:
            try:
                session = self._access.session(*name)
            except UnknownSession:
                return None
            assert self._nursery is not None, "boards are read only while they are kept"
            listener = Context() if context is None else context
            self._called[name] = begun = _Called(listener.of_user(name[0].name))
            self._nursery.start_soon(self._call_out, name, begun, session, name=f"callouts of {name[1]}")
            while len(self._called) > MAX_CALLERS:
                oldest = self._called.pop(first_of_the_heaviest(dict.fromkeys(self._called, 1), itemgetter(0)))
                oldest.scope.cancel(reason="too many sessions are called out")
        called = self._called[name]
        self._called.move_to_end(name)
        called.read_at = trio.current_time()
        return called

    async def _call_out(self, name: MissionName, called: _Called, session: InteractionSession) -> None:
        """The supervision boundary of the callouts of a session."""
        caller = Caller(
            session,
            self._announcer,
            lambda: called.context,
            lambda announcement: self._tell(name, announcement),
            ledger=self._access.stage.ledger,
            is_told=lambda event_id: self._has(name, event_id),
        )
        try:
            with called.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_until_unread, called)
                    await caller.run()
                    nursery.cancel_scope.cancel(reason="the session is closed")
        except* FootlightsError:  # no place for it, or closed meanwhile
            pass
        except* Exception as errors:  # noqa: BLE001 - whatever fails here is a board, and harms nothing
            self._access.incidents.failed("callouts", errors)
        finally:
            if self._called.get(name) is called:
                del self._called[name]

    def _has(self, name: MissionName, event_id: str) -> bool:
        board = self._boards.find(name)
        return board is not None and board.has(event_id)

    def _tell(self, name: MissionName, announcement: Announcement) -> None:
        event_id, board = announcement.payload.event_id, self._boards.find(name)
        if board is None:
            return
        if not announcement.is_amended:
            board.add(announcement)
            self._boards.make_room()
        elif board.has(event_id):
            board.amend(board.find(event_id), announcement)

    # -- time

    def _now_ms(self) -> int:
        return round((self._ahead + trio.current_time()) * 1_000)

    def _time_of(self, policy_ts_ms: int | None) -> int | None:
        return policy_ts_ms if self._replay else None


async def _until_unread(called: _Called) -> None:
    while (patience := called.read_at + UNREAD_SECONDS) > trio.current_time():  # noqa: ASYNC110 - it grows meanwhile
        await trio.sleep_until(patience)
    called.scope.cancel(reason="nobody reads the board")
