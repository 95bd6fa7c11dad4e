"""WebSocket connections of the chat gateway: senders at `/perturb/{agent}`, observers at `/observe/{agent}`.

A sender gets only errors; the events of dialogues go to observers. Losing a connection changes nothing about the
dialogues.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio

from footlights.errors import Busy, Detached, FootlightsError
from footlights_transports.errors import RateLimited
from footlights_transports.views.kgent.frames import pieces
from footlights_transports.views.kgent.pure import wire as kgent
from footlights_transports.views.kgent.pure.messages import ErrorCode, InvalidMessage
from footlights_transports.websocket.connection import Connection, lose
from footlights_transports.websocket.endpoint import Accepted
from footlights_transports.websocket.stream import PING
from footlights_transports.websocket.writer import FrameWriter

if TYPE_CHECKING:
    from footlights_transports.views.kgent.gateway import KgentGateway
    from footlights_transports.views.kgent.pure.messages import ChatEvent
    from footlights_transports.views.kgent.room import Dialogue, Observer
    from footlights_transports.views.kgent.sender import Sender
    from footlights_transports.views.kgent.tap import SessionTap
    from footlights_transports.websocket.endpoint import Channel, Visitor

TRY_LATER = 1013
HEADERS = (
    (b"kgent-protocol-version", kgent.PROTOCOL_VERSION.encode()),
    (b"kgent-handles", "; ".join(f"{name}={handle}" for name, handle in kgent.AGENTESE_HANDLES.items()).encode()),
)
"""In the answer to every handshake."""


def accept_sender(gateway: KgentGateway, visitor: Visitor) -> Accepted:
    """Accept a client that sends messages. The answer has the id of its session, percent-encoded."""
    sender = gateway.enter(visitor.user, visitor.names["agent"], kgent.read_perturb_query(visitor.query))
    session = (b"kgent-session", quote(sender.session_id, safe=":").encode())
    return Accepted(partial(PerturbConnection, gateway, sender), (*HEADERS, session))


def accept_observer(gateway: KgentGateway, visitor: Visitor) -> Accepted:
    """Accept a client that reads events. It is registered now, so that it misses nothing."""
    user, agent, query = visitor.user, visitor.names["agent"], kgent.read_observe_query(visitor.query)
    room = gateway.room(user, agent)
    tap = None if query.session is None else gateway.tap(user, agent, query.session)
    observer = room.watch() if query.mirror else room.observe(query.after)
    return Accepted(partial(ObserveConnection, gateway, observer, tap), HEADERS, observer.leave)


class PerturbConnection(Connection):
    """A client that sends messages."""

    def __init__(self, gateway: KgentGateway, sender: Sender, channel: Channel) -> None:
        super().__init__(gateway.access.policy.limits, channel)
        self._gateway = gateway
        self._sender = sender
        self._writer = FrameWriter(self.socket, self.stream, partial(lose, self.tasks), in_batches=False)

    async def take(self, frame: str | bytes) -> None:
        """Begin a dialogue, or send the refusal."""
        refused = self._begin_dialogue(frame)
        if refused:
            await self._writer.send_events([each.encode() for each in refused])

    def _begin_dialogue(self, frame: str | bytes) -> list[ChatEvent]:
        """The refusal of a frame that began none. While it is sent, no exception holds the frame any more."""
        correlation_id: str | None = None
        try:
            # Before the frame is read: an invalid one counts too.
            self._sender.take_frame()
            message = kgent.read_message(frame, self._gateway.now)
            correlation_id = message.correlation_id
            dialogue = self._sender.perturb(message)
        except kgent.Unreadable as error:
            return self._refusal(error, error.correlation_id)
        except FootlightsError as error:
            return self._refusal(error, correlation_id or kgent.correlation_id_in(frame))
        self.tasks.start_soon(self._report, dialogue, name="kgent report")
        return []

    async def _report(self, dialogue: Dialogue) -> None:
        await dialogue.over.wait()
        if dialogue.failure:
            await self._writer.send_events(dialogue.failure)

    def _refusal(self, error: FootlightsError, correlation_id: str | None) -> list[ChatEvent]:
        self._gateway.access.incidents.refused(f"kgent_message_{error.code}")
        code, meaning, retry_after = ErrorCode.SESSION_EXPIRED, None, None
        if isinstance(error, RateLimited):
            code, meaning, retry_after = ErrorCode.RATE_LIMITED, str(error), error.retry_after
        elif isinstance(error, InvalidMessage):
            code, meaning = ErrorCode.INVALID_MESSAGE, str(error)
        return kgent.refusal(code, correlation_id, self._gateway.now, meaning=meaning, retry_after=retry_after)


class ObserveConnection(Connection):
    """A client that reads events."""

    def __init__(self, gateway: KgentGateway, observer: Observer, tap: SessionTap | None, channel: Channel) -> None:
        super().__init__(gateway.access.policy.limits, channel)
        self._gateway = gateway
        self._observer = observer
        self._tap = tap
        self._sending = trio.Lock()

    async def take(self, frame: str | bytes) -> None:
        """An observer's frames are ignored."""

    async def run(self) -> None:
        """Serve this client."""
        self.tasks.start_soon(self._pump, name="kgent events")
        if self._tap is not None:
            self.tasks.start_soon(self._run_tap, self._tap, name="kgent tap")
        try:
            await super().run()
        finally:
            self._observer.leave()

    def leave(self) -> None:
        """Send open dialogues to their end; then close because the server goes away."""
        self._observer.end()
        if self._tap is not None:
            self._tap.end()

    async def _run_tap(self, tap: SessionTap) -> None:
        try:
            await tap.run(self._send)
        except Busy:
            await self.close(TRY_LATER, "Too many listen to this session; come back later.")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lose()

    async def _pump(self) -> None:
        try:
            for correlation_id, after in self._observer.unknown.items():
                expired = kgent.expired(correlation_id, after, self._gateway.now)
                await self._send([each.encode() for each in expired])
            while (batch := await self._next_batch()) is None or batch:
                if batch is None:
                    await self.stream.send_all(PING)
                else:
                    await self._send(batch)
        except Detached:
            await self.close(TRY_LATER, "You are too slow; come back with your correlation_id.")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lose()
        else:
            if self._tap is not None:
                await self._tap.over.wait()
            await self.finish()

    async def _next_batch(self) -> list[bytes] | None:
        """The next events; None if a heartbeat is due first."""
        with trio.move_on_after(self._gateway.config.heartbeat_interval):
            return await self._observer.next_batch()
        return None

    async def _send(self, batch: list[bytes]) -> None:
        """Send it in pieces, each with its own timeout: a client that takes each in time is slow, but not gone."""
        # Only control frames may come between the fragments of one message.
        async with self._sending:
            for piece in pieces(batch):
                if self.socket.closed is not None:
                    return  # nothing follows a close frame
                with trio.move_on_after(self.limits.send_timeout) as patience:
                    await self.stream.send_all(piece)
                if patience.cancelled_caught:
                    self.lose()
                    return
