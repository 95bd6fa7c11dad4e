"""One WebSocket connection: commands come in, replies and the events of any number of sessions go out.

Commands are taken one after the other, each answered once; those that wait for something are answered when it is
known, and hold up no other. Losing the connection changes nothing about the turns.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import trio
from attrs import frozen
from trio_websocket import ConnectionClosed

from footlights.errors import Busy, Detached, FootlightsError, InvalidCommand
from footlights_transports.access.policy import Pace
from footlights_transports.errors import WIRE_CODES, BadFrame, RateLimited, too_large
from footlights_transports.views.native import protocol as native
from footlights_transports.websocket.broadcaster import Delivery
from footlights_transports.websocket.stream import PING
from footlights_transports.websocket.writer import FrameWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from trio_websocket import WebSocketConnection

    from footlights import Subscription
    from footlights.events import JsonValue
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.errors import CommandId
    from footlights_transports.websocket.broadcaster import Broadcaster
    from footlights_transports.websocket.handshake import Admitted
    from footlights_transports.websocket.stream import WireStream

GOING_AWAY = 1001
PROTOCOL_ERROR = 1002
NOT_ALLOWED = 1008
NOT_UTF_8 = 1007
TOO_BIG = 1009

_SILENCES_OF_THE_DEAD = 2
"""A peer that gave no sign of life for so many times `keep_alive` after a ping is gone."""

_FAULTS = {PROTOCOL_ERROR: "This is not WebSocket.", NOT_UTF_8: "Text must be UTF-8."}
"""What trio-websocket ends a connection for without a word. Its own words would quote the client."""


@frozen
class Fault:
    """Why a connection is closed, as the close frame says it."""

    code: int
    reason: str


@frozen
class _Followed:
    stream: Subscription
    delivery: Delivery
    done: trio.Event


class WsConnection:
    """One client. `run` ends when the client is gone, or was told to go."""

    def __init__(
        self,
        access: SessionAccess,
        broadcaster: Broadcaster,
        socket: WebSocketConnection,
        stream: WireStream,
        admitted: Admitted,
        tasks: trio.Nursery,
    ) -> None:
        self._access = access
        self._broadcaster = broadcaster
        self._limits = access.policy.limits
        self._socket = socket
        self._stream = stream
        self._user = admitted.user
        self._writer = FrameWriter(socket, stream, partial(_lose, tasks), in_batches=admitted.in_batches)
        self._tasks = tasks
        self._pace = Pace(self._limits.commands_per_second, self._limits.command_burst, trio.current_time())
        self._followed: dict[str, _Followed] = {}
        self._waiting = 0
        self._is_leaving = False

    async def run(self) -> None:
        """Take commands until the connection ends."""
        self._tasks.start_soon(watch_for_silence, self._stream, self._limits.keep_alive, self.lose, name="ws silence")
        try:
            while True:
                await self._take(await self._socket.get_message())
        except ConnectionClosed:
            if not self._is_leaving:
                self.lose()

    def lose(self) -> None:
        """Let everything of this connection go, at once."""
        _lose(self._tasks)

    def leave(self) -> None:
        """Send what waits, then say that the server goes away."""
        self._is_leaving = True
        self._tasks.start_soon(self._leave, name="ws goodbye")

    @property
    def fault(self) -> Fault | None:
        """What the client did wrong, if the connection ends for that and it was not told."""
        return fault_of(self._socket, self._stream, self._limits.max_frame_bytes)

    def dismiss(self, code: int, reason: str, patience: float) -> None:
        """Say why, and let it go, at the latest after so many seconds."""
        self._tasks.start_soon(self.close, code, reason, patience, name="ws dismissal")

    async def close(self, code: int, reason: str, patience: float = inf) -> None:
        with trio.move_on_after(patience):
            await self._socket.aclose(code, reason)
        self.lose()

    async def _leave(self) -> None:
        all_followed = list(self._followed.values())
        for followed in all_followed:
            if followed.stream.is_entered:
                followed.stream.end()
        for followed in all_followed:
            await followed.done.wait()
        await self.close(GOING_AWAY, "the server goes away")

    # -- commands

    async def _take(self, frame: str | bytes) -> None:
        answer = await self._answer(frame)
        if answer is not None:
            await self._writer.send(answer)

    async def _answer(self, frame: str | bytes) -> bytes | None:
        """The answer to a frame; None if it comes by itself.

        An exception holds the frame through its traceback, so none is kept in a variable, nor while an answer is sent.
        """
        command_id: CommandId = None
        try:
            # Before the frame is read: one that cannot be read costs its sender as much.
            self._pace.take(trio.current_time())
            self._access.take_command(self._user)
            command_id, command = native.read_command(_text(frame))
            result = await self._perform(command_id, command)
        except RateLimited as error:
            return self._refusal(native.id_in(frame), error)
        except BadFrame as error:
            return self._refusal(error.command_id, error)
        except Exception as error:  # noqa: BLE001 - what fails here is this command, and not the connection
            return self._refusal(command_id, error)
        if result is None:
            return None
        self._take_along(command)
        return native.write_reply(command_id, result)

    def _take_along(self, command: native.Command) -> None:
        """What a command brings about at once goes out with its answer, in one piece."""
        if isinstance(command, native.BeginTurn | native.Cancel) and command.session_id in self._followed:
            self._broadcaster.take_along(self._followed[command.session_id].delivery)

    async def _perform(self, command_id: CommandId, command: native.Command) -> Mapping[str, JsonValue] | None:
        """Do it, and return the result; None if the reply comes by itself."""
        access, user = self._access, self._user
        match command:
            case native.Start(params):
                return {"session_id": access.start(user, params).session_id}
            case native.BeginTurn(session_id, said, params):
                return {"turn_id": access.begin_turn(user, session_id, said, params)}
            case native.Cancel(session_id, turn_id):
                return {"canceled": list(access.cancel(user, session_id, turn_id))}
            case native.HeardUpTo(session_id, turn_id, seq):
                access.heard(user, session_id, turn_id, seq)
                return {}
            case native.Ping():
                return {}
            case native.Subscribe():
                self._check_may_follow(command.session_id)
                wanted = access.subscribe(
                    user, command.session_id, command.after, command.terminal_seen, remote_models=command.remote_models
                )
                delivery = Delivery(self._broadcaster, wanted, self._writer)
                followed = self._followed[command.session_id] = _Followed(wanted, delivery, trio.Event())
                if command.after is None:
                    # Not soon, but now: a turn that the next command begins belongs to what was asked for.
                    await self._tasks.start(self._follow, command_id, command.session_id, followed)
                else:
                    # Who comes back gets such a turn anyway, and the ledger may have to be asked before.
                    self._tasks.start_soon(self._follow, command_id, command.session_id, followed, name="ws return")
            case native.Finalize(session_id, turn_id):
                self._answer_later(command_id, partial(self._finalize, session_id, turn_id))
            case native.Close(session_id):
                self._answer_later(command_id, partial(self._close, session_id))
        return None

    async def _finalize(self, session_id: str, turn_id: str) -> dict[str, JsonValue]:
        return native.commit_json(await self._access.finalize(self._user, session_id, turn_id))

    async def _close(self, session_id: str) -> dict[str, JsonValue]:
        await self._access.close(self._user, session_id)
        return {}

    def _answer_later(self, command_id: CommandId, work: Callable[[], Awaitable[Mapping[str, JsonValue]]]) -> None:
        limit = self._limits.max_commands_waiting
        if self._waiting >= limit:
            raise Busy(f"{limit} commands of this connection wait for their answers (max_commands_waiting).")
        self._waiting += 1
        self._tasks.start_soon(self._wait_and_answer, command_id, work, name="ws answer")

    async def _wait_and_answer(
        self, command_id: CommandId, work: Callable[[], Awaitable[Mapping[str, JsonValue]]]
    ) -> None:
        try:
            await self._writer.send(await self._answer_of(command_id, work))
        finally:
            # Not before it is sent: a client that asks and never reads would have any number of them waiting.
            self._waiting -= 1

    async def _answer_of(self, command_id: CommandId, work: Callable[[], Awaitable[Mapping[str, JsonValue]]]) -> bytes:
        try:
            return native.write_reply(command_id, await work())
        except Exception as error:  # noqa: BLE001 - what fails here is this command, and not the connection
            return self._refusal(command_id, error)

    def _refusal(self, command_id: CommandId, error: Exception) -> bytes:
        told = error if isinstance(error, FootlightsError) else FootlightsError()
        if told.code in WIRE_CODES and told.code != "internal":
            self._access.incidents.refused(f"ws_command_{told.code}")
        else:
            self._access.incidents.failed("ws_command", error)
        return native.write_error(command_id, told)

    # -- events

    def _check_may_follow(self, session_id: str) -> None:
        limit = self._limits.max_subscriptions_per_connection
        if session_id in self._followed:
            raise InvalidCommand("This connection follows that session already.")
        if len(self._followed) >= limit:
            raise Busy(f"This connection follows {limit} sessions (max_subscriptions_per_connection).")

    async def _follow(
        self,
        command_id: CommandId,
        session_id: str,
        followed: _Followed,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Answer, and send a session's events until it ends or lets us go. Started when it is known whether it may."""
        with self._place_of(session_id, followed):
            async with AsyncExitStack() as stack:
                try:
                    stream = await self._enter(stack, command_id, followed)
                except Exception as error:  # noqa: BLE001 - what fails here is this command, and not the connection
                    task_status.started()
                    # Not if the server goes: the next one may not refuse it.
                    last_word = None if self._is_leaving else self._refusal(command_id, error)
                else:
                    task_status.started()
                    last_word = await self._pump(session_id, stream, followed.delivery)
            if last_word is not None:
                await self._writer.send(last_word)

    @contextmanager
    def _place_of(self, session_id: str, followed: _Followed) -> Generator[None]:
        """Until the last word is sent: a client that asks and never reads would have any number of them waiting."""
        try:
            yield
        finally:
            del self._followed[session_id]
            followed.done.set()

    async def _enter(self, stack: AsyncExitStack, command_id: CommandId, followed: _Followed) -> Subscription:
        """Begin to follow, and reply: before the first event, and never again."""
        stream = await stack.enter_async_context(followed.stream)
        if self._is_leaving:
            stream.end()
        # What it counts as taken already: a client that comes back says so.
        await self._writer.send(native.write_reply(command_id, {"cursor": dict(stream.cursor)}))
        return stream

    async def _pump(self, session_id: str, stream: Subscription, delivery: Delivery) -> bytes | None:
        """Have the broadcaster send events to the end of the stream; return the notice that says why it ended."""
        try:
            while stream.is_live or not stream.is_empty:
                await delivery.run()
                await self._writer.flush()
            await stream.receive_batch()
        except Detached as error:
            return native.write_notice("detached", session_id, error.reason)
        is_going = self._is_leaving or self._access.is_closing
        return None if is_going else native.write_notice("ended", session_id)


def _text(frame: str | bytes) -> str:
    if isinstance(frame, bytes):
        raise BadFrame("A command is a text frame.")
    return frame


def _lose(tasks: trio.Nursery) -> None:
    # Not a method: the writer would hold the connection that holds it, and both would be left to the collector.
    tasks.cancel_scope.cancel(reason="the connection is gone")


def fault_of(socket: WebSocketConnection, stream: WireStream, max_frame_bytes: int) -> Fault | None:
    """What the client did wrong, if the connection ends for that and it was not told."""
    if stream.has_said_goodbye:
        return None
    if stream.was_sent_too_much:
        return Fault(TOO_BIG, str(too_large(max_frame_bytes)))
    closed = socket.closed
    return None if closed is None or closed.code not in _FAULTS else Fault(closed.code, _FAULTS[closed.code])


async def watch_for_silence(stream: WireStream, patience: float, lose: Callable[[], None]) -> None:
    """Ask a peer that was silent for so long for a sign of life, and call `lose` if none comes."""
    while True:
        silent_since = stream.alive_at
        await trio.sleep_until(silent_since + patience)
        if stream.alive_at > silent_since:
            continue
        given_up_at = trio.current_time() + patience * _SILENCES_OF_THE_DEAD
        # The ping may have to wait behind events that nobody reads; and one that is gone needs none.
        with trio.move_on_at(given_up_at), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(PING)
        await trio.sleep_until(given_up_at)
        if stream.alive_at == silent_since:
            lose()
