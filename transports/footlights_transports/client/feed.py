"""What a server sends to one subscriber, over one connection after the other.

When the connection is lost, or the server lets the subscriber go, the next read comes back with the cursor. While
nobody reads, nobody reads the connection: the server sees a slow subscriber, and treats it as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from footlights.errors import Detached, FootlightsError, SessionClosed, UnknownSession
from footlights_transports.client.dial import dial
from footlights_transports.client.errors import ConnectionLost
from footlights_transports.client.line import Line
from footlights_transports.client.messages import cursor_in, result_of, write_command
from footlights_transports.client.retry import PASSING, Losses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import trio

    from footlights_transports.client.address import Address
    from footlights_transports.client.messages import Message
    from footlights_transports.client.progress import Progress
    from footlights_transports.client.retry import Retry

_PASSING: tuple[type[FootlightsError], ...] = (*PASSING, Detached)
_SUBSCRIBED = 1
_CLOSED = 2


class FeedHost(Protocol):
    """What a feed needs of its session."""

    session_id: str
    address: Address
    retry: Retry
    nursery: trio.Nursery
    is_closed: bool
    remote_models: bool


class Feed:
    """Made by a stream, and read by one task."""

    def __init__(self, session: FeedHost, progress: Progress, *, resumes: bool) -> None:
        self._session = session
        self._progress = progress
        self._resumes = resumes
        self._line: Line | None = None
        self._losses = Losses(session.retry)
        self._was_told_closed = False
        self.has_ended = False
        """Whether nothing more comes: the session is closed, or nobody listens."""

    async def open(self) -> None:
        """Subscribe for the first time. Raises what the server refuses it with, and `ConnectionLost`."""
        await self._session.retry.until_done(self._subscribe, (ConnectionLost,))
        self._resumes = True

    async def receive(self) -> Sequence[Mapping[str, object]]:
        """What comes next; nothing at the end. Raises why the server would not have us back, and `ConnectionLost`."""
        while not self.has_ended:
            try:
                if self._line is None:
                    await self._subscribe()
                elif events := self._read(await self._line.receive()):
                    self._losses.forget()
                    return events
            except _PASSING as lost:
                await self.hang_up()
                await self._losses.wait_after(lost)
            except (SessionClosed, UnknownSession) as gone:
                await self._take_leave(gone)
        await self.hang_up()
        return ()

    async def leave(self) -> None:
        """Nobody wants any more of it."""
        self.has_ended = True
        await self.hang_up()

    async def hang_up(self) -> None:
        """Drop the connection. Whoever reads on comes back."""
        line, self._line = self._line, None
        if line is not None:
            await line.aclose()

    # -- inside

    async def _subscribe(self) -> None:
        wish = write_command("subscribe", _SUBSCRIBED, self._wish())
        line = Line(await dial(self._session.address, in_batches=True), self._session.nursery)
        try:
            cursor = cursor_in(result_of(await line.ask(_SUBSCRIBED, wish)))
            if self._session.is_closed:
                # It was opened again only for us to be told the rest.
                await line.send(write_command("close", _CLOSED, {"session_id": self._session.session_id}))
        except BaseException:
            await line.aclose()
            raise
        self._line = line
        self._was_told_closed = False
        self._progress.begin_at(cursor)
        self._losses.connected()
        self._losses.answered()

    def _wish(self) -> dict[str, Any]:
        wish: dict[str, Any] = {"session_id": self._session.session_id}
        if self._resumes:
            wish["after"] = self._progress.cursor
            wish["terminal_seen"] = sorted(self._progress.terminal_seen)
            wish["remote_models"] = self._session.remote_models
        return wish

    def _read(self, message: Message) -> Sequence[Mapping[str, object]]:
        if isinstance(message, list):
            return message
        if "event_type" in message:
            return (message,)
        if message.get("notice") == "ended":
            self.has_ended = True
        elif message.get("notice") == "detached":
            raise Detached(str(message.get("reason")))
        return ()

    async def _take_leave(self, gone: SessionClosed | UnknownSession) -> None:
        """The session is closed, and the server has forgotten what there was to tell. Raises it if that is missing."""
        if isinstance(gone, SessionClosed) and not self._was_told_closed:
            # A server that is going down says so of every session. Who asks again finds nobody, or its successor.
            self._was_told_closed = True
            await self._losses.wait_after(gone)
        elif self._progress.is_settled:
            self.has_ended = True
        else:
            raise gone
