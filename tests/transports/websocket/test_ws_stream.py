"""The byte stream and the writer: frames arrive whole, whichever task sends them and whatever is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from trio.testing import lockstep_stream_pair, memory_stream_pair
from trio_websocket import ConnectionClosed, wrap_client_stream, wrap_server_stream
from wsproto.connection import Connection, ConnectionType
from wsproto.events import TextMessage

from footlights import EventType, open_stage, wire
from footlights.testing import Trial, cancel_everywhere
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.websocket.server import WsServer
from footlights_transports.websocket.stream import WireStream, text_frames
from footlights_transports.websocket.writer import FrameWriter
from footlights_transports.worlds.world import OneWorld
from tests.kit.peers.ws_peer import HANDSHAKE, read_until_end
from tests.kit.serving import native

if TYPE_CHECKING:
    from trio.testing import MockClock
    from trio_websocket import WebSocketConnection


def messages_in(data: bytes) -> list[str]:
    """The messages, as wsproto reads them."""
    reader = Connection(ConnectionType.CLIENT)
    reader.receive_data(data)
    messages, unfinished = [], ""
    for event in reader.events():
        assert isinstance(event, TextMessage)
        unfinished += event.data
        if event.message_finished:
            messages.append(unfinished)
            unfinished = ""
    assert not unfinished
    return messages


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 100_000])
def test_a_text_frame_of_any_size_is_one(size: int) -> None:
    assert messages_in(text_frames([b"x" * size])) == ["x" * size]


def test_many_frames_are_many_messages() -> None:
    texts = ["", "Gute Nacht", "🎭" * 40, "ü" * 40_000]
    assert messages_in(text_frames(text.encode() for text in texts)) == texts
    assert text_frames([]) == b""


async def test_what_several_tasks_send_is_never_mixed() -> None:
    ours, theirs = lockstep_stream_pair()
    stream = WireStream(ours, lambda: None, 1_000)
    async with trio.open_nursery() as nursery:
        for letter in b"abc":
            nursery.start_soon(stream.send_all, bytes([letter]) * 100)
        got = b""
        while len(got) < 300:
            got += await theirs.receive_some(7)
    assert sorted(got[at : at + 100] for at in (0, 100, 200)) == [b"a" * 100, b"b" * 100, b"c" * 100]


async def test_after_a_frame_was_cut_off_nothing_is_sent() -> None:
    ours, theirs = lockstep_stream_pair()
    stream = WireStream(ours, lambda: None, 1_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, b"abc")
        assert await theirs.receive_some(1) == b"a"
        nursery.cancel_scope.cancel()
    with pytest.raises(trio.BrokenResourceError):
        await stream.send_all(b"d")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.refuse, 1009, "")
        assert b"\x88" not in await read_until_end(theirs)
        await theirs.aclose()


async def test_on_end_is_called_however_the_stream_ends() -> None:
    ends: list[str] = []
    ours, theirs = memory_stream_pair()
    await theirs.send_all(b"a")
    stream = WireStream(ours, lambda: ends.append("end"), 1_000)
    assert await stream.receive_some() == b"a"
    assert not ends
    await stream.wait_send_all_might_not_block()
    await theirs.aclose()
    assert await stream.receive_some() == b""
    assert ends == ["end"]
    await stream.aclose()
    assert ends == ["end"] * 2
    with pytest.raises(trio.ClosedResourceError):
        await stream.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await stream.send_all(b"a")
    await stream.refuse(1009, "")


# -- the writer


async def opened(
    nursery: trio.Nursery, ours: trio.abc.Stream, theirs: trio.abc.Stream
) -> tuple[WebSocketConnection, WireStream]:
    """A connection as its server has it; the client reads nothing."""
    wire_stream = WireStream(ours, lambda: None, 1_000)
    await theirs.send_all(HANDSHAKE)
    request = await wrap_server_stream(nursery, wire_stream)
    socket = await request.accept()
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await theirs.receive_some(1)
    return socket, wire_stream


class Gated(trio.abc.SendStream):
    """Records what is sent, and finishes a send when the test allows it."""

    def __init__(self) -> None:
        self.sends: list[bytes] = []
        self.may_send = trio.Semaphore(0)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.sends.append(bytes(data))
        await self.may_send.acquire()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("in_batches", [False, True])
async def test_what_is_put_during_a_send_goes_out_in_the_next_one(in_batches: bool, quiet_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery, ours, theirs:
        socket, _ = await opened(nursery, ours, theirs)
        gated = Gated()
        stream = WireStream(trio.StapledStream(gated, ours.receive_stream), lambda: None, 1_000)
        writer = FrameWriter(socket, stream, lambda: None, in_batches=in_batches)
        done: list[str] = []

        async def give(text: str) -> None:
            await (writer.send_events([text.encode()]) if text.isdigit() else writer.send(f'"{text}"'.encode()))
            done.append(text)

        nursery.start_soon(give, "1")
        await trio.sleep(1)
        for text in ("2", "reply", "3"):
            nursery.start_soon(give, text)
            await trio.sleep(1)
        gated.may_send.release()
        await trio.sleep(1)
        assert done == ["1"]
        gated.may_send.release()
        await trio.sleep(1)
        assert sorted(done) == ["1", "2", "3", "reply"]
        together = ['"reply"', "[2,3]"] if in_batches else ['"reply"', "2", "3"]
        assert [messages_in(data) for data in gated.sends] == [["[1]" if in_batches else "1"], together]
        nursery.cancel_scope.cancel()


async def test_a_connection_on_which_nothing_can_be_sent_is_lost() -> None:
    ours, theirs = memory_stream_pair()
    broken, other_end = memory_stream_pair()
    await other_end.aclose()
    async with trio.open_nursery() as nursery, ours, theirs, broken:
        socket, stream = await opened(nursery, ours, theirs)
        lost: list[str] = []
        broken_stream = WireStream(broken, lambda: None, 1_000)
        await FrameWriter(socket, broken_stream, lambda: lost.append("broken"), in_batches=False).send(b"1")
        assert lost == ["broken"]
        await stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert socket.closed is not None
        await FrameWriter(socket, stream, lambda: lost.append("closed"), in_batches=False).send(b"1")
        assert lost == ["broken", "closed"]
        nursery.cancel_scope.cancel()


async def test_a_client_that_disconnects_during_the_handshake_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        ours, theirs = memory_stream_pair()
        async with ours, theirs:
            await theirs.send_all(HANDSHAKE)
            await theirs.receive_stream.aclose()
            await WsServer(OneWorld(access := SessionAccess(stage), native(access))).serve(ours)
    assert not caplog.records


# -- cancelled anywhere


def test_a_server_that_is_cancelled_at_any_moment_leaves_nothing_behind_and_the_turn_goes_on() -> None:
    async def scenario(trial: Trial) -> None:
        cast = standard_cast(ScriptedModel(lambda _: (Say("Good evening, my friend."),)))
        async with open_stage(cast) as stage, trio.open_nursery() as nursery:
            session = stage.start()
            theirs, ours = memory_stream_pair()
            server, closed, scope = (
                WsServer(OneWorld(access := SessionAccess(stage), native(access))),
                trio.Event(),
                trio.CancelScope(),
            )

            async def handle() -> None:
                async with ours:
                    await server.serve(ours)

            async def accept() -> None:
                server.connections.start_soon(handle)

            async def run() -> None:
                with scope:
                    await server.run(accept)
                closed.set()

            nursery.start_soon(run)
            trial.aim(scope.cancel)
            turn_id = session.begin_turn("A room?")
            async with trio.open_nursery() as client:
                client.start_soon(play, client, theirs, session.session_id, turn_id)
                await session.finalize(turn_id).wait()
            trial.disarm()
            scope.cancel()
            await closed.wait()
            assert stage.statistics().subscribers == 0
            assert stage.statistics().turns_settled == {"ok": 1}
            await theirs.aclose()

    assert cancel_everywhere(scenario, orders=2, pairs=20).points > 50


async def play(nursery: trio.Nursery, stream: trio.abc.Stream, session_id: str, turn_id: str) -> None:
    """Follow the turn as far as it comes."""
    with trio.move_on_after(5.0):
        try:
            socket = await wrap_client_stream(nursery, stream, "localhost", "/v1", subprotocols=["footlights.v1"])  # type: ignore[arg-type]
            await socket.send_message(f'{{"op":"subscribe","id":1,"session_id":"{session_id}","after":{{}}}}')
            await socket.get_message()
            while wire.decode(await socket.get_message()).event_type is not EventType.COMMIT_FINAL:
                pass
            await socket.aclose()
        except ConnectionClosed:
            pass
    nursery.cancel_scope.cancel()
