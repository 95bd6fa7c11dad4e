"""One WebSocket connection to the chat gateway: one that talks, or one that listens.

Who talks is told of what failed, and nothing else; what is said comes to those who listen. Losing a connection changes
nothing about the dialogues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio
from trio_websocket import ConnectionClosed

from footlights.errors import Busy, Detached, FootlightsError
from footlights_transports.errors import RateLimited
from footlights_transports.views.kgent.frames import pieces
from footlights_transports.views.kgent.pure import wire as kgent
from footlights_transports.views.kgent.pure.messages import ErrorCode, InvalidMessage
from footlights_transports.views.kgent.room import Observer
from footlights_transports.websocket.connection import GOING_AWAY, fault_of, watch_for_silence
from footlights_transports.websocket.stream import PING
from footlights_transports.websocket.writer import FrameWriter

if TYPE_CHECKING:
    from trio_websocket import WebSocketConnection

    from footlights_transports.views.kgent.conversation import Conversation
    from footlights_transports.views.kgent.gateway import KgentGateway
    from footlights_transports.views.kgent.overhearing import Overhearing
    from footlights_transports.views.kgent.pure.messages import ChatEvent
    from footlights_transports.views.kgent.room import Dialogue
    from footlights_transports.websocket.connection import Fault
    from footlights_transports.websocket.handshake import Visitor
    from footlights_transports.websocket.stream import WireStream

TRY_LATER = 1013
HEADERS = [
    (b"kgent-protocol-version", kgent.PROTOCOL_VERSION.encode()),
    (b"kgent-handles", "; ".join(f"{name}={handle}" for name, handle in kgent.AGENTESE_HANDLES.items()).encode()),
]
"""What every client of the gateway is told when it connects."""


class Welcome:
    """A visitor that may come in: its place is taken, and the connection is still to be made."""

    def __init__(self, gateway: KgentGateway, visitor: Visitor) -> None:
        """Raises `FootlightsError` if it may not."""
        user, agent = visitor.user, visitor.target.agent
        self.user = user
        self.subprotocol = visitor.subprotocol
        self.headers = HEADERS.copy()
        """What it is told when it connects; one that talks, in which session, with % for what no header can hold."""
        self._gateway = gateway
        self._place: Conversation | Observer
        self._may_be_kept = False
        self._overhearing: Overhearing | None = None
        if visitor.target.endpoint is kgent.Endpoint.PERTURB:
            wished = kgent.read_perturb_query(visitor.query)
            self._place = conversation = gateway.enter(user, agent, wished)
            self._may_be_kept = bool(wished.keep_content)
            self.headers.append((b"kgent-session", quote(conversation.session.session_id, safe=":").encode()))
        else:
            wish = kgent.read_observe_query(visitor.query)
            room = gateway.room(user, agent)
            if wish.session is not None:
                self._overhearing = gateway.overhear(user, agent, wish.session)
            self._place = room.observe(wish.after)

    def connection(
        self, socket: WebSocketConnection, stream: WireStream, tasks: trio.Nursery
    ) -> PerturbConnection | ObserveConnection:
        """Let it in."""
        if isinstance(self._place, Observer):
            return ObserveConnection(self._gateway, socket, stream, tasks, self._place, self._overhearing)
        return PerturbConnection(self._gateway, socket, stream, tasks, self._place, self._may_be_kept)

    def __enter__(self) -> None:
        """Until it is let in."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """If it did not come in after all, its place is free again."""
        if kind is not None and isinstance(self._place, Observer):
            self._place.leave()


class _Connection(ABC):
    """What both kinds share. `run` ends when the client is gone, or was told to go."""

    def __init__(
        self, gateway: KgentGateway, socket: WebSocketConnection, stream: WireStream, tasks: trio.Nursery
    ) -> None:
        self._gateway = gateway
        self._limits = gateway.access.policy.limits
        self._socket = socket
        self._stream = stream
        self._tasks = tasks

    async def run(self) -> None:
        """Serve this client."""
        self._tasks.start_soon(watch_for_silence, self._stream, self._limits.keep_alive, self.lose, name="ws silence")
        self.begin()
        try:
            while True:
                await self.take(await self._socket.get_message())
        except ConnectionClosed:
            self.lose()

    def lose(self) -> None:
        """Let everything of this connection go, at once."""
        self._tasks.cancel_scope.cancel(reason="the connection is gone")

    def leave(self) -> None:
        """Say that the server goes away, after all that waits."""
        self._tasks.start_soon(self.close, GOING_AWAY, "the server goes away", name="kgent goodbye")

    @property
    def fault(self) -> Fault | None:
        """What the client did wrong, if the connection ends for that and it was not told."""
        return fault_of(self._socket, self._stream, self._limits.max_frame_bytes)

    def dismiss(self, code: int, reason: str, patience: float) -> None:
        """Say why, and let it go, at the latest after so many seconds."""
        self._tasks.start_soon(self.close, code, reason, patience, name="kgent dismissal")

    async def close(self, code: int, reason: str, patience: float = inf) -> None:
        with trio.move_on_after(patience):
            await self._socket.aclose(code, reason)
        self.lose()

    def begin(self) -> None:  # noqa: B027 - who only talks has nothing to begin
        """Called once, before anything is read."""

    @abstractmethod
    async def take(self, frame: str | bytes) -> None:
        """Called with each frame."""
        ...


class PerturbConnection(_Connection):
    """One that talks, in one conversation. What it says is kept only if it agreed."""

    def __init__(
        self,
        gateway: KgentGateway,
        socket: WebSocketConnection,
        stream: WireStream,
        tasks: trio.Nursery,
        conversation: Conversation,
        may_be_kept: bool,
    ) -> None:
        super().__init__(gateway, socket, stream, tasks)
        self._sender = gateway.sender(conversation)
        self._may_be_kept = may_be_kept
        self._writer = FrameWriter(socket, stream, self.lose, in_batches=False)

    async def take(self, frame: str | bytes) -> None:
        """Begin a dialogue, or say why not."""
        refused = self._begin_dialogue(frame)
        if refused:
            await self._writer.send_events(map(kgent.write_event, refused))

    def _begin_dialogue(self, frame: str | bytes) -> list[ChatEvent]:
        """What is said of a frame that began none. No exception, which holds the frame, is kept while that is sent."""
        correlation_id: str | None = None
        try:
            # Before it is read: what cannot be read costs its sender as much.
            self._sender.take_frame()
            message = kgent.read_message(frame, self._gateway.now)
            correlation_id = message.correlation_id
            dialogue = self._gateway.perturb(self._sender, message, may_be_kept=self._may_be_kept)
        except kgent.Unreadable as error:
            return self._refusal(error, error.correlation_id)
        except FootlightsError as error:
            return self._refusal(error, correlation_id or kgent.correlation_id_in(frame))
        self._tasks.start_soon(self._report, dialogue, name="kgent report")
        return []

    async def _report(self, dialogue: Dialogue) -> None:
        await dialogue.over.wait()
        if dialogue.failure:
            await self._writer.send_events(dialogue.failure)

    def _refusal(self, error: FootlightsError, correlation_id: str | None) -> list[ChatEvent]:
        self._gateway.access.incidents.refused(f"kgent_message_{error.code}")
        return _refusal(error, correlation_id, self._gateway.now)


class ObserveConnection(_Connection):
    """One that listens. What it sends is read and passed over."""

    def __init__(
        self,
        gateway: KgentGateway,
        socket: WebSocketConnection,
        stream: WireStream,
        tasks: trio.Nursery,
        observer: Observer,
        overhearing: Overhearing | None,
    ) -> None:
        super().__init__(gateway, socket, stream, tasks)
        self._observer = observer
        self._overhearing = overhearing
        self._sending = trio.Lock()

    async def run(self) -> None:
        """Serve this client, and let its place go."""
        try:
            await super().run()
        finally:
            self._observer.leave()

    def begin(self) -> None:
        """Send what there is to hear."""
        self._tasks.start_soon(self._pump, name="kgent events")
        if self._overhearing is not None:
            self._tasks.start_soon(self._overhear, self._overhearing, name="kgent overhearing")

    def leave(self) -> None:
        """Send what is open to its end; then say that the server goes away."""
        self._observer.end()
        if self._overhearing is not None:
            self._overhearing.end()

    async def take(self, frame: str | bytes) -> None:
        """Observers have nothing to say."""

    async def _overhear(self, overhearing: Overhearing) -> None:
        try:
            await overhearing.run(self._send)
        except Busy:
            await self.close(TRY_LATER, "Too many listen to this session; come back later.")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lose()

    async def _pump(self) -> None:
        try:
            for correlation_id, after in self._observer.unknown.items():
                expired = kgent.expired(correlation_id, after, self._gateway.now)
                await self._send(list(map(kgent.write_event, expired)))
            while (batch := await self._next_batch()) is None or batch:
                if batch is None:
                    await self._stream.send_all(PING)
                else:
                    await self._send(batch)
        except Detached:
            await self.close(TRY_LATER, "You are too slow; come back with your correlation_id.")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lose()
        else:
            if self._overhearing is not None:
                await self._overhearing.over.wait()
            await self.close(GOING_AWAY, "the server goes away")

    async def _next_batch(self) -> list[bytes] | None:
        """What comes next; None if nothing came for too long."""
        with trio.move_on_after(self._gateway.config.heartbeat_interval):
            return await self._observer.next_batch()
        return None

    async def _send(self, batch: list[bytes]) -> None:
        """Send it piece by piece: who takes each of them in time is slow, and not gone."""
        # Only pings and the like may come between the pieces of one message.
        async with self._sending:
            for piece in pieces(batch):
                if self._socket.closed is not None:
                    return  # nothing follows a goodbye
                with trio.move_on_after(self._limits.send_timeout) as patience:
                    await self._stream.send_all(piece)
                if patience.cancelled_caught:
                    self.lose()
                    return


def _refusal(error: FootlightsError, correlation_id: str | None, now: float) -> list[ChatEvent]:
    if isinstance(error, RateLimited):
        code, meaning = ErrorCode.RATE_LIMITED, "Too many messages."
        return kgent.refusal(code, correlation_id, now, meaning=meaning, retry_after=error.retry_after)
    if isinstance(error, InvalidMessage):
        return kgent.refusal(ErrorCode.INVALID_MESSAGE, correlation_id, now, meaning=str(error))
    return kgent.refusal(ErrorCode.SESSION_EXPIRED, correlation_id, now)
