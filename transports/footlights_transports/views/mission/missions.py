"""Missions: the callouts and the boards of a server.

The board of a mission with the id of an open session shows the turns of that session, from the first read on. No board
delays a turn, and any board may be lost.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.errors import FootlightsError, SessionClosed, UnknownSession
from footlights.failures import contained, leaves
from footlights.fair_share import eviction_candidate
from footlights_transports.views.mission.announcer import Announcer
from footlights_transports.views.mission.board import Boards
from footlights_transports.views.mission.caller import Caller
from footlights_transports.views.mission.limits_file import LimitsFile
from footlights_transports.views.mission.pure.payload import Context
from footlights_transports.views.mission.pure.requests import debrief_of
from footlights_transports.views.mission.recordings import Recordings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights import InteractionSession
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.mission.announcer import Announcement, Callout
    from footlights_transports.views.mission.board import BoardEvent, MissionBoard, MissionName
    from footlights_transports.views.mission.pure.requests import CalloutRequest, Closing
    from footlights_transports.views.mission.voice import Voice

MAX_CALLERS = 100
"""Sessions that are called out at once. At the limit the user with the most loses the least recently read one."""
UNREAD_SECONDS = 600.0
"""A session is called out until its board was not read for so long, so that no board keeps its session open."""


@frozen(kw_only=True)
class MissionSettings:
    """The settings of a host."""

    voice: Voice | None = None
    """The voice. Without one callouts are decided all the same, and never heard."""
    folder: Path | None = None
    """Where recordings and the state of the limits are kept. Without it they are not."""
    audio_seconds: float = 3_600.0
    """How long a recording can be fetched; then it is deleted."""
    replay: bool = False
    """Whether `policy_ts_ms` of a request is the time of its decision."""
    wall_clock: Callable[[], float] = time.time


class _Listener:
    """The reader of a session's board, and the scope of the caller that fills it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.scope = trio.CancelScope()


class Missions:
    """All missions of one server, by their full names (`own_name`). Needs the task `keep`."""

    def __init__(self, access: SessionAccess, settings: MissionSettings | None = None) -> None:
        settings = settings or MissionSettings()
        self._access = access
        self._replay = settings.replay
        self._clock_offset = settings.wall_clock() - trio.current_time()
        self._recordings: Recordings | None = None
        self._limits: LimitsFile | None = None
        self.announcer = Announcer(self._now_ms, settings.voice)
        if settings.folder is not None:
            self._recordings = Recordings(settings.folder, settings.audio_seconds, self._now_ms)
            self.announcer = Announcer(self._now_ms, settings.voice, self._recordings)
            if not settings.replay:  # a replay begins with an empty history
                self._limits = LimitsFile(settings.folder / "limits.json", self.announcer, self._now_ms)
        self._boards = Boards(self._forgotten)
        self._listeners: OrderedDict[MissionName, _Listener] = OrderedDict()
        """The sessions that are called out, the most recently read at the end."""
        self._last_number = 0
        self._nursery: trio.Nursery | None = None

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Call out sessions until cancelled; then end every board, and wait for the voices, which requests end."""
        try:
            async with self.announcer:
                try:
                    async with trio.open_nursery() as self._nursery:
                        if self._recordings is not None:
                            self._nursery.start_soon(self._recordings.run)
                        if self._limits is not None:
                            self._nursery.start_soon(self._limits.run)
                        task_status.started()
                        await trio.sleep_forever()
                finally:
                    self._nursery = None
                    self._boards.end()
        finally:
            if self._limits is not None:
                with trio.CancelScope(shield=True):  # the last voices have changed the history
                    await self._limits.write()

    def new_id(self, kind: str, board: MissionBoard | None = None) -> str:
        """An id for an event that came without one, and that is not on the board."""
        while True:
            self._last_number += 1
            name = f"{kind}-{self._last_number:06d}"
            if board is None or board.find(name) is None:
                return name

    # -- callouts

    async def speak(self, user: User, request: CalloutRequest) -> Announcement:
        """Decide about a callout, and speak it if that is the decision and this is no dry run."""
        request, at_ms = request.of_user(user.name), self._time_of(request.policy_ts_ms)
        if request.dry_run:
            await trio.lowlevel.checkpoint()
            return self.announcer.consider(request.event, request.context, at_ms)
        return await self.announcer.announce(request.event, request.context, at_ms)

    async def recording(self, user: User, name: str) -> bytes | None:
        """A recording of this user's callouts; None if there is none, or no more."""
        return None if self._recordings is None else await self._recordings.read(user.name, name)

    async def add(self, user: User, request: CalloutRequest) -> BoardEvent:
        """Put an event on the board of its mission, and call it out. Raises `EventExists` and `SessionClosed`."""
        request, at_ms = request.of_user(user.name), self._time_of(request.policy_ts_ms)
        board = self.board(user, request.event.mission_id)
        board.check_new(request.event.event_id)
        callout = self.announcer.decide(request.event, request.context, at_ms)
        event = board.add(callout.announcement)
        await self._speak(board, event, callout)
        return event

    async def acknowledge(self, user: User, board: MissionBoard, trigger: BoardEvent, closing: Closing) -> BoardEvent:
        """Close an event, put its debrief on the board and call it out. The second time only return the debrief."""
        if trigger.debrief is not None:
            await trio.lowlevel.checkpoint()
            return trigger.debrief
        closed = trigger.announcement.event
        debrief = debrief_of(closed, closing, self.new_id("debrief", board))
        context, at_ms = closing.context.of_user(user.name), self._time_of(closing.policy_ts_ms)
        callout = self.announcer.decide(debrief, context, at_ms)
        trigger.debrief = event = board.add(callout.announcement, closed.event_id)
        await self._speak(board, event, callout)
        return event

    async def _speak(self, board: MissionBoard, event: BoardEvent, callout: Callout) -> None:
        """Speak an event of the board."""
        self._boards.make_room()
        try:
            await self.announcer.speak(callout)
        finally:
            if callout.announcement.is_amended:
                board.amend(event, callout.announcement)

    # -- boards

    def find(self, user: User, mission_id: str) -> MissionBoard | None:
        """The board of a user's mission, if there is one. Raises `SessionClosed`."""
        self._check_open()
        return self._boards.find((user, mission_id))

    def board(self, user: User, mission_id: str) -> MissionBoard:
        """The board of a user's mission, a new one if there is none. Raises `SessionClosed`."""
        self._check_open()
        return self._boards.open((user, mission_id))

    def look(self, user: User, mission_id: str, context: Context | None) -> MissionBoard | None:
        """The board for a single read. There is a new one only for an open session. Raises `SessionClosed`.

        A context replaces the listener of the session.
        """
        self._check_open()
        name = (user, mission_id)
        listener = self._listener(name, context)
        if listener is None:
            return self._boards.find(name)
        if context is not None:
            listener.context = context.of_user(user.name)
        return self._boards.open(name)

    def read(self, user: User, mission_id: str, context: Context | None) -> MissionBoard:
        """The board for a reader that follows it. Raises `SessionClosed`."""
        return self.look(user, mission_id, context) or self.board(user, mission_id)

    def attend(self, user: User, mission_id: str, context: Context | None = None) -> None:
        """A reader goes on reading. The context matters only if its session has to be called out anew."""
        if self._nursery is not None:
            self._listener((user, mission_id), context)

    def _check_open(self) -> None:
        if self._nursery is None:
            raise SessionClosed("The server is closing.")

    # -- sessions

    def _listener(self, name: MissionName, context: Context | None) -> _Listener | None:
        """The listener of an open session, which is called out from now on; None without such a session."""
        if name not in self._listeners:
            try:
                session = self._access.session(*name)
            except UnknownSession:
                return None
            assert self._nursery is not None, "boards are read only while `keep` runs"
            self._listeners[name] = new = _Listener((context or Context()).of_user(name[0].name))
            self._nursery.start_soon(self._call_out, name, new, session, name=f"callouts of {name[1]}")
            while len(self._listeners) > MAX_CALLERS:
                oldest = eviction_candidate(dict.fromkeys(self._listeners, 1), itemgetter(0))
                self._listeners.pop(oldest).scope.cancel(reason="too many sessions are called out")
        listener = self._listeners[name]
        self._listeners.move_to_end(name)
        listener.scope.deadline = trio.current_time() + UNREAD_SECONDS
        return listener

    async def _call_out(self, name: MissionName, listener: _Listener, session: InteractionSession) -> None:
        """The supervision boundary of a session's callouts."""
        caller = Caller(
            session,
            self.announcer,
            lambda: listener.context,
            lambda announcement: self._tell(name, announcement),
            is_told=lambda event_id: self._event(name, event_id) is not None,
        )
        try:
            with contained(self._fail), listener.scope:
                await caller.run()
        finally:
            if self._listeners.get(name) is listener:
                del self._listeners[name]

    def _fail(self, error: BaseException) -> None:
        """Count a failure of a caller, unless the session only has no place for it or is closed."""
        if not all(isinstance(leaf, FootlightsError) for leaf in leaves(error)):
            self._access.incidents.failed("callouts", error)

    def _forgotten(self, name: MissionName) -> None:
        listener = self._listeners.pop(name, None)
        if listener is not None:
            listener.scope.cancel(reason="its board is forgotten")

    def _event(self, name: MissionName, event_id: str) -> BoardEvent | None:
        board = self._boards.find(name)
        return None if board is None else board.find(event_id)

    def _tell(self, name: MissionName, announcement: Announcement) -> None:
        """Put an announcement of a session's turn on the board, unless the board or the event is forgotten."""
        board = self._boards.find(name)
        if board is None:
            return
        if not announcement.is_amended:
            board.add(announcement)
            self._boards.make_room()
        elif (event := board.find(announcement.payload.event_id)) is not None:
            board.amend(event, announcement)

    # -- time

    def _now_ms(self) -> int:
        return round((self._clock_offset + trio.current_time()) * 1_000)

    def _time_of(self, policy_ts_ms: int | None) -> int | None:
        return policy_ts_ms if self._replay else None
