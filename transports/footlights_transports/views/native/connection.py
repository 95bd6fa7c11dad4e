"""WebSocket connection of the native view: commands in, replies and events of any number of sessions out.

Commands are performed one after the other, and each gets one reply. Commands that wait for something are answered when
it is known, and delay no other. A lost connection cancels no turn.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import orjson
import trio
from attrs import frozen

from footlights.errors import Busy, Detached, FootlightsError, InvalidCommand
from footlights_transports.access.notes import notes_of
from footlights_transports.access.policy import RateLimiter
from footlights_transports.errors import BadFrame, RateLimited
from footlights_transports.views.native import protocol as native
from footlights_transports.websocket.broadcaster import Delivery
from footlights_transports.websocket.connection import Connection, lose
from footlights_transports.websocket.writer import FrameWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from footlights import Subscription
    from footlights.authority import Intent
    from footlights.events import JsonValue
    from footlights_transports.access.followed_commits import FollowedCommits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.errors import CommandId
    from footlights_transports.websocket.endpoint import Channel, Visitor


@frozen
class _Followed:
    stream: Subscription
    delivery: Delivery
    done: trio.Event


class NativeConnection(Connection):
    """The connection of one client. `?batch=1` in its address asks for arrays of events."""

    def __init__(self, access: SessionAccess, visitor: Visitor, channel: Channel) -> None:
        super().__init__(access.policy.limits, channel)
        self._access = access
        self._broadcaster = channel.broadcaster
        self._user = visitor.user
        in_batches = parse_qs(visitor.query).get("batch") == ["1"]
        self._writer = FrameWriter(self.socket, self.stream, partial(lose, self.tasks), in_batches=in_batches)
        self._rate = RateLimiter(self.limits.commands_per_second, self.limits.command_burst, trio.current_time())
        self._followed: dict[str, _Followed] = {}
        self._waiting = 0
        self._follows_commits = False

    async def finish(self) -> None:
        """End every subscription, wait until its last event is sent, and close."""
        all_followed = list(self._followed.values())
        for followed in all_followed:
            if followed.stream.is_entered:
                followed.stream.end()
        for followed in all_followed:
            await followed.done.wait()
        await super().finish()

    # -- commands

    async def take(self, frame: str | bytes) -> None:
        answer = await self._answer(frame)
        if answer is not None:
            await self._writer.send(answer)

    async def _answer(self, frame: str | bytes) -> bytes | None:
        """The reply to a frame; None if another task sends it.

        An exception holds the frame through its traceback, so none is kept in a variable or while a reply is sent.
        """
        command_id: CommandId = None
        try:
            # Before the frame is parsed, so that an invalid one is charged as well.
            self._rate.take(trio.current_time())
            self._access.admission.take_command(self._user)
            command_id, command = native.read_command(_text(frame))
            result = await self._perform(command_id, command)
        except RateLimited as error:
            return self._refusal(native.id_in(frame), error)
        except BadFrame as error:
            return self._refusal(error.command_id, error)
        except Exception as error:  # noqa: BLE001 - a boundary: this command fails, and not the connection
            return self._refusal(command_id, error)
        if result is None:
            return None
        self._take_along(command)
        return native.write_reply(command_id, result)

    def _take_along(self, command: native.Command) -> None:
        """Send the events that a command causes at once together with its reply."""
        if isinstance(command, native.BeginTurn | native.Cancel) and command.session_id in self._followed:
            self._broadcaster.take_along(self._followed[command.session_id].delivery)

    async def _perform(self, command_id: CommandId, command: native.Command) -> Mapping[str, JsonValue] | None:
        """Perform a command, and return the result; None if another task sends the reply."""
        access, user = self._access, self._user
        match command:
            case native.Start(params):
                persona = next(iter(access.stage.personas), None)
                speaks = {} if persona is None else {"persona": persona}
                return {"session_id": access.start(user, params).session_id, **speaks}
            case native.BeginTurn(session_id, said, params, str(request_id)):
                # Waited for here, although the ledger may be read: the next command may cancel this turn.
                return {"turn_id": await access.begin_turn_once(user, session_id, said, params, request_id)}
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
                    user,
                    command.session_id,
                    command.after,
                    command.terminal_seen,
                    remote_models=command.remote_models,
                    about=command.about or {},
                )
                delivery = Delivery(self._broadcaster, wanted, self._writer)
                followed = self._followed[command.session_id] = _Followed(wanted, delivery, trio.Event())
                if command.after is None:
                    # Wait until it is attached: the next command may begin a turn, whose events are wanted.
                    await self.tasks.start(self._follow, command_id, command.session_id, followed)
                else:
                    # Do not wait: a cursor finds such a turn anyway, and the ledger may have to be read before.
                    self.tasks.start_soon(self._follow, command_id, command.session_id, followed, name="ws return")
            case native.Finalize(session_id, turn_id):
                self._answer_later(command_id, partial(self._finalize, session_id, turn_id))
            case native.ListCommits(session_id, limit):
                self._answer_later(command_id, partial(self._commits, session_id, limit))
            case native.Summarize(session_id, turn_id):
                return native.summary_result(access.summary(user, session_id, turn_id))
            case native.HostCommit(intents, why):
                self._answer_later(command_id, partial(self._commit, intents, why))
            case native.FollowCommits():
                if self._follows_commits:
                    raise InvalidCommand("This connection follows commits already.")
                self._follows_commits = True
                self.tasks.start_soon(self._follow_commits, command_id, command, name="ws commits")
            case native.ShowWorld(path):
                self._answer_later(command_id, partial(self._world, path))
            case native.Notes(session_id, act):
                self._answer_later(command_id, partial(notes_of, access.stage, access.session(user, session_id), act))
            case native.Close(session_id):
                self._answer_later(command_id, partial(self._close, session_id))
        return None

    async def _finalize(self, session_id: str, turn_id: str) -> dict[str, JsonValue]:
        return native.commit_json(await self._access.finalize(self._user, session_id, turn_id))

    async def _commits(self, session_id: str, limit: int) -> dict[str, JsonValue]:
        return native.commits_json(await self._access.commits(self._user, session_id, limit))

    async def _commit(self, intents: tuple[Intent, ...], why: str) -> dict[str, JsonValue]:
        return native.host_commit_json(await self._access.host_commit(self._user, intents, why))

    async def _follow_commits(self, command_id: CommandId, command: native.FollowCommits) -> None:
        """Reply, and send each commit when the one before it is sent, until the feed ends."""
        try:
            followed = await self._access.follow_commits(self._user, command.after, command.under)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a boundary: this command fails, and not the connection
            last: bytes | None = self._refusal(command_id, error)
        else:
            await self._writer.send(native.write_reply(command_id, native.followed_json(followed)))
            last = await self._send_commits(followed)
        self._follows_commits = False
        if last is not None:
            await self._writer.send(last)

    async def _send_commits(self, followed: FollowedCommits) -> bytes | None:
        """Send commits until the user may not see them any more, or the stage closes; return the notice to send."""
        try:
            async for told in followed:
                await self._writer.send(orjson.dumps({"commit": native.told_json(told)}))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a boundary: `visibility` is code of the host
            self._access.incidents.met("ws_command", error)
            return native.write_feed_end(error)
        return None

    async def _world(self, path: str) -> dict[str, JsonValue]:
        part = self._access.stage.world_at(path, self._user)
        return {"world": part.value, **({} if part.digest is None else {"digest": part.digest})}

    async def _close(self, session_id: str) -> dict[str, JsonValue]:
        await self._access.close(self._user, session_id)
        return {}

    def _answer_later(self, command_id: CommandId, work: Callable[[], Awaitable[Mapping[str, JsonValue]]]) -> None:
        limit = self.limits.max_commands_waiting
        if self._waiting >= limit:
            raise Busy(f"{limit} commands of this connection wait for their answers (max_commands_waiting).")
        self._waiting += 1
        self.tasks.start_soon(self._wait_and_answer, command_id, work, name="ws answer")

    async def _wait_and_answer(
        self, command_id: CommandId, work: Callable[[], Awaitable[Mapping[str, JsonValue]]]
    ) -> None:
        try:
            await self._writer.send(await self._answer_of(command_id, work))
        finally:
            # After the reply is sent, or a client that never reads could have any number of them waiting.
            self._waiting -= 1

    async def _answer_of(self, command_id: CommandId, work: Callable[[], Awaitable[Mapping[str, JsonValue]]]) -> bytes:
        try:
            return native.write_reply(command_id, await work())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a boundary: this command fails, also if the host exits
            return self._refusal(command_id, error)

    def _refusal(self, command_id: CommandId, error: BaseException) -> bytes:
        self._access.incidents.met("ws_command", error)
        return native.write_error(command_id, error if isinstance(error, FootlightsError) else FootlightsError())

    # -- events

    def _check_may_follow(self, session_id: str) -> None:
        limit = self.limits.max_subscriptions_per_connection
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
        """Reply, and send the events of a session until the stream ends. Started when the reply is certain."""
        try:
            notice = await self._send_events(command_id, session_id, followed, task_status)
            if notice is not None:
                await self._writer.send(notice)
        finally:
            # After the notice is sent, or a client that never reads could have any number of them waiting.
            del self._followed[session_id]
            followed.done.set()

    async def _send_events(
        self, command_id: CommandId, session_id: str, followed: _Followed, task_status: trio.TaskStatus[None]
    ) -> bytes | None:
        """Enter the subscription, and send its events; return the last frame, if there is something left to say."""
        async with AsyncExitStack() as stack:
            try:
                stream = await self._enter(stack, command_id, followed)
            except Exception as error:  # noqa: BLE001 - a boundary: this command fails, and not the connection
                task_status.started()
                # No refusal during shutdown: the server may accept it after a restart.
                return None if self.is_leaving else self._refusal(command_id, error)
            task_status.started()
            return await self._pump(session_id, stream, followed.delivery)

    async def _enter(self, stack: AsyncExitStack, command_id: CommandId, followed: _Followed) -> Subscription:
        """Enter the subscription, and reply: once, before the first event."""
        stream = await stack.enter_async_context(followed.stream)
        if self.is_leaving:
            stream.end()
        # The cursor says which turns count as taken; the client resumes with it.
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
        is_going = self.is_leaving or self._access.admission.is_closing
        return None if is_going else native.write_notice("ended", session_id)


def _text(frame: str | bytes) -> str:
    if isinstance(frame, bytes):
        raise BadFrame("A command is a text frame.")
    return frame
