"""Server-Sent Events over real sockets: a stream resumes where it was cut, and slow clients delay no other."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights import (
    BusyRule,
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    InvalidCommand,
    Limits,
    ModelTraits,
    SessionParams,
    TokenDelta,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    UnknownTurn,
    laws,
    open_stage,
    wire,
)
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.stream.cursor import Cursor
from footlights.testing import cancel_everywhere, only, payloads
from footlights_actors import Flood, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import WireLimits
from footlights_transports.http.sse import STREAMS, OpenStreams
from footlights_transports.views.native.event_response import EventStream
from footlights_transports.views.native.sse_cursor import read_cursor, write_cursor
from tests.kit.peers.http_peer import Answer, CuedModel, House, HttpGuest, open_house, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping
    from pathlib import Path
    from typing import Any

    from footlights import StreamEvent
    from footlights.testing import Trial

CONCURRENT = TurnParams(busy=BusyRule.CONCURRENT)
STALLING = ScriptedModel(lambda _: (Say("Well,"), Stall()))
A_LOT = ScriptedModel(lambda _: (Flood("x" * 15, 30_000),))
"""More than fits between a server and a client that does not read, however much of it is joined."""


def said(events: Iterable[StreamEvent], turn_id: str) -> str:
    return "".join(each.delta for each in payloads([e for e in events if e.turn_id == turn_id], TokenDelta))


async def rest_of(guest: HttpGuest, last_event_id: str, commits: int) -> list[StreamEvent]:
    """What comes after that id, until there were so many commits."""
    events: list[StreamEvent] = []
    async with guest.follow(last_event_id) as stream:
        while sum(event.event_type is EventType.COMMIT_FINAL for event in events) < commits:
            events.append(await anext(stream))
    return events


async def unread_stream(house: House, guest: HttpGuest) -> trio.SocketStream:
    """A client that asked for events, and has room for only a few."""
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection = trio.socket.from_stdlib_socket(raw.dup())
    await connection.connect(("127.0.0.1", house.listening.port))
    stream = trio.SocketStream(connection)
    await stream.send_all(f"GET {guest.path}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return stream


# -- coming back


async def test_coming_back_after_any_byte_skips_and_repeats_nothing() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        guest = await house.start()
        before = await guest.begin_turn("Before")
        await guest.finalize(before)
        async with guest.follow() as stream:
            turns = [await guest.begin_turn(words, CONCURRENT) for words in ("One ~go three", "Four ~go six")]
            model.cue("go")
            events: list[StreamEvent] = []
            while sum(event.event_type is EventType.COMMIT_FINAL for event in events) < 2:
                events.append(await anext(stream))
        # What a client has who was cut off after any byte is what came in whole blocks.
        text, opening = stream.text, stream.text.index(b"\n\n") + 2
        had = {text[:end].count(b"\ndata: ", opening - 1): text[:end] for end in ends(text, opening)}
        assert sorted(had) == list(range(len(events) + 1))
        for count, prefix in had.items():
            last_event_id = prefix.rpartition(b"id: ")[2].partition(b"\n")[0].decode()
            missing = 2 - sum(event.event_type is EventType.COMMIT_FINAL for event in events[:count])
            rest = await rest_of(guest, last_event_id, missing)
            assert laws.check(rest, after=read_cursor(last_event_id).after) == []
            union = [*events[:count], *rest]
            assert laws.check(union) == []
            assert {event.turn_id for event in union} == set(turns)
            assert [said(union, turn_id) for turn_id in turns] == ["One go three", "Four go six"]


def ends(text: bytes, first: int) -> list[int]:
    """Where each block ends."""
    found = [first]
    while (end := text.find(b"\n\n", found[-1])) >= 0:
        found.append(end + 2)
    return found


async def test_an_empty_last_event_id_is_none() -> None:
    async with open_house(STALLING) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        async with guest.follow("") as stream:
            assert (await anext(stream)).turn_id == turn_id


@pytest.mark.parametrize("restarts", [False, True])
async def test_coming_back_after_any_event_ends_a_turn_once_also_if_nothing_is_retained(
    tmp_path: Path, restarts: bool
) -> None:
    path, limits = tmp_path / "inn.ledger", Limits(replay_turns=0)
    async with SqliteLedger(path) as ledger, open_house(ledger=ledger, limits=limits) as house:
        guest = await house.start(SessionParams(session_id="inn"))
        async with guest.follow() as stream:
            ids = [stream.last_event_id]
            turn_id = await guest.begin_turn("A room?")
            events: list[StreamEvent] = []
            async for event in stream.until_commit(turn_id):
                events.append(event)
                ids.append(stream.last_event_id)
        if not restarts:
            await check_returns(guest, events, ids)
    if restarts:
        async with SqliteLedger(path) as ledger, open_house(ledger=ledger, limits=limits) as house:
            await check_returns(HttpGuest(house.client, "inn"), events, ids)


async def check_returns(guest: HttpGuest, events: list[StreamEvent], ids: list[str]) -> None:
    for count, last_event_id in enumerate(ids[:-1]):
        union = [*events[:count], *await rest_of(guest, last_event_id, 1)]
        assert laws.check(union) == []
        had_the_end = count == len(events) - 1
        assert only(union, TurnFinal).text_forgotten is not had_the_end
        assert only(union, CommitFinal).commit_digest == only(events, CommitFinal).commit_digest


async def test_after_a_restart_the_end_of_a_turn_is_sent_once(tmp_path: Path) -> None:
    cursor = {"t1-000042": 5}
    told: list[list[EventType]] = []
    for epoch in range(1, 3):
        async with SqliteLedger(tmp_path / "inn.ledger") as ledger, open_house(ledger=ledger) as house:
            await house.start(SessionParams(session_id="other"))
            if epoch == 1:
                continue
            guest = HttpGuest(house.client, "inn")
            for terminal_seen in ((), ("t1-000042",)):
                rest = await rest_of(guest, write_cursor(Cursor(dict(cursor), set(terminal_seen))), 1)
                told.append([event.event_type for event in rest])
            # Cut off between the two: the id of the first says that the terminal event was seen.
            async with guest.follow(write_cursor(Cursor(dict(cursor)))) as stream:
                await anext(stream)
            told.append([event.event_type for event in await rest_of(guest, stream.last_event_id, 1)])
    commit = [EventType.COMMIT_FINAL]
    assert told == [[EventType.TURN_INTERRUPTED, *commit], commit, commit]


@pytest.mark.parametrize(
    ("query", "is_told"), [("", False), ("?remote_models=false", False), ("?remote_models=true", True)]
)
async def test_a_client_that_resumes_after_a_restart_gives_its_consent_again(query: str, is_told: bool) -> None:
    far = ScriptedModel(lambda _: (Say("Aye."),), traits=ModelTraits(remote=True))
    async with open_house(far) as house:
        guest = HttpGuest(house.client, "inn")
        async with guest.follow(write_cursor(Cursor({})), query) as stream:
            turn_id = await guest.begin_turn("A room?")
            events = [event async for event in stream.until_commit(turn_id)]
    assert said(events, turn_id) == ("Aye." if is_told else "")


async def test_a_turn_named_as_begun_is_sent_once_and_an_unknown_one_is_refused() -> None:
    async with open_house() as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        async with guest.follow(query=f"?begun={turn_id}") as stream:
            events = [await anext(stream)]
        async with guest.follow(stream.last_event_id, f"?begun={turn_id}") as stream:
            events += [event async for event in stream.until_commit(turn_id)]
        assert laws.check(events) == []
        assert said(events, turn_id)
        with pytest.raises(UnknownTurn):
            async with guest.follow(query="?begun=t1-000009&begun=nonsense"):
                raise AssertionError("nobody gets in")


@pytest.mark.parametrize("query", ["?remote_models=", "?remote_models=1", "?remote_models=True"])
async def test_consent_is_true_or_false_and_nothing_else(query: str) -> None:
    async with open_house() as house:
        answer = await house.client.get(f"{(await house.start()).path}/events{query}")
        assert refused(answer) == (400, "invalid_command")


@pytest.mark.parametrize("last_event_id", ["nonsense!", "WzEse30sW10", "x" * 9_000])
async def test_an_id_that_was_never_given_out_is_refused(last_event_id: str) -> None:
    async with open_house() as house:
        guest = await house.start()
        with pytest.raises(InvalidCommand, match="Last-Event-ID"):
            async with guest.follow(last_event_id):
                raise AssertionError("nobody gets in")


async def test_a_cursor_that_names_what_never_was_is_refused() -> None:
    async with open_house(STALLING) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        with pytest.raises(UnknownTurn):
            async with guest.follow(write_cursor(Cursor({"t1-000009": 3}))):
                raise AssertionError("nobody gets in")
        with pytest.raises(InvalidCommand):
            async with guest.follow(write_cursor(Cursor({turn_id: 99}))):
                raise AssertionError("nobody gets in")
        assert house.stage.statistics().subscribers == 0


async def test_ids_stay_short_however_long_a_session_lasts() -> None:
    async with open_house() as house:
        guest = await house.start()
        async with guest.follow() as stream:
            for _ in range(20):
                turn_id = await guest.begin_turn("A room?")
                while (await anext(stream)).event_type is not EventType.COMMIT_FINAL:
                    pass
            assert len(stream.cursor) <= 5
            assert turn_id in stream.cursor


# -- silence


async def test_a_silent_stream_is_kept_alive_and_a_busy_one_needs_nothing(mock_clock: MockClock) -> None:
    model = CuedModel()
    async with open_house(model, wire_limits=WireLimits(keep_alive=15.0)) as house:
        guest = await house.start()
        async with guest.follow() as stream, trio.open_nursery() as nursery:
            await guest.begin_turn("One ~two ~three")
            while (await anext(stream)).event_type is not EventType.TOKEN_DELTA:
                pass
            blocks: list[dict[str, str] | None] = []

            async def read() -> None:
                while True:
                    blocks.append(await stream.read_block())

            nursery.start_soon(read)
            for cue in ("two", "three"):
                await wait_all_tasks_blocked()
                mock_clock.jump(14.9)
                await wait_all_tasks_blocked()
                model.cue(cue)
                await wait_all_tasks_blocked()
            assert stream.comments == 0
            assert len(blocks) == 4  # two deltas, turn_final, commit_final
            for expected in (1, 2):
                mock_clock.jump(15.1)
                await wait_all_tasks_blocked()
                assert stream.comments == expected
            nursery.cancel_scope.cancel()


# -- clients that are slow, or gone


async def test_losing_the_connection_lets_go_of_the_session_and_cancels_nothing() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("One ~two")
        async with guest.follow():
            assert house.stage.statistics().subscribers == 1
        await wait_all_tasks_blocked()
        assert house.stage.statistics().subscribers == 0
        model.cue("two")
        assert (await guest.finalize(turn_id)).commit_outcome is CommitOutcome.OK


async def test_a_client_that_stops_waiting_for_a_commit_leaves_nothing_behind() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("One ~two")
        before = trio.lowlevel.current_statistics().tasks_living
        async with await trio.open_tcp_stream("127.0.0.1", house.listening.port) as stream:
            path = f"{guest.turn_path(turn_id)}/finalize"
            await stream.send_all(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await wait_all_tasks_blocked()
            assert trio.lowlevel.current_statistics().tasks_living > before
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before
        model.cue("two")
        assert (await guest.finalize(turn_id)).commit_outcome is CommitOutcome.OK


async def test_a_slow_client_delays_no_other_and_gets_the_ranges_that_it_missed() -> None:
    async with open_house(A_LOT) as house:
        guest = await house.start()
        async with await unread_stream(house, guest) as slow:
            await wait_all_tasks_blocked()
            turn_id = await guest.begin_turn("Flood, please.")
            assert (await guest.finalize(turn_id)).commit_outcome is CommitOutcome.OK
            assert house.stage.statistics().best_effort_dropped > 0
            text = b""
            while b"commit_final" not in text:
                text += await slow.receive_some()
            assert text.count(b"dropped_seq_ranges") > 0
            assert text.count(b"turn_final") == 1


async def test_a_client_that_takes_nothing_is_given_up(mock_clock: MockClock) -> None:
    async with open_house(A_LOT, wire_limits=WireLimits(send_timeout=20.0)) as house:
        guest = await house.start()
        async with await unread_stream(house, guest) as slow:
            await wait_all_tasks_blocked()
            await guest.finalize(await guest.begin_turn("Flood, please."))
            assert house.stage.statistics().subscribers == 1
            mock_clock.jump(20.1)
            await wait_all_tasks_blocked()
            assert house.stage.statistics().subscribers == 0
            with suppress(trio.BrokenResourceError):
                while await slow.receive_some():
                    pass


async def test_a_stalled_subscriber_gets_a_detached_notice(mock_clock: MockClock) -> None:
    limits, wire_limits = Limits(stall_detach=5.0, stall_timeout=100.0), WireLimits(send_timeout=100.0)
    async with open_house(A_LOT, limits=limits, wire_limits=wire_limits) as house:
        guest = await house.start()
        async with await unread_stream(house, guest) as slow:
            await wait_all_tasks_blocked()
            await guest.finalize(await guest.begin_turn("Flood, please."))
            mock_clock.jump(5.1)
            await guest.finalize(await guest.begin_turn("And again."))
            text = b""
            while b"event: detached" not in text:
                text += await slow.receive_some()
            assert b'"reason":"stalled"' in text


async def test_a_session_that_is_closed_elsewhere_ends_its_streams() -> None:
    async with open_house(STALLING) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        async with guest.follow() as stream:
            await house.stage.session(guest.session_id).close()
            events = [event async for event in stream]
        assert only(events, TurnInterrupted).reason is InterruptReason.SESSION_CLOSED
        assert events[-1].turn_id == turn_id
        assert [each["notice"] for each in stream.notices] == ["ended"]


async def test_a_server_that_goes_away_sends_what_waits_and_ends_its_streams() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("One ~two")
        async with guest.follow() as stream:
            events = [await anext(stream) for _ in range(4)]
            house.stop()
            events += [event async for event in stream]
            await house.stopped.wait()
        assert stream.notices == []
        session = house.stage.session(guest.session_id)
        model.cue("two")
        await session.finalize(turn_id).wait()
        async with session.subscribe(after=stream.cursor) as rest:
            events += [event async for event in rest.until_commit(turn_id)]
        assert laws.check(events) == []
        assert only(events, TurnFinal).text == "One two"


async def test_a_client_of_http_1_0_is_sent_the_events_without_chunks() -> None:
    async with open_house() as house:
        guest = await house.start()
        async with await trio.open_tcp_stream("127.0.0.1", house.listening.port) as stream:
            await stream.send_all(f"GET {guest.path}/events HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            await wait_all_tasks_blocked()
            await guest.finalize(await guest.begin_turn("A room?"))
            await guest.close()
            answer = b""
            while data := await stream.receive_some():
                answer += data
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert body.startswith(b"id: ")
        assert body.endswith(b'"session_id":"s1-000001"}\n\n')


async def test_events_are_not_stored_on_the_way() -> None:
    async with open_house() as house:
        guest = await house.start()
        async with await trio.open_tcp_stream("127.0.0.1", house.listening.port) as stream:
            answer = Answer(stream)
            await answer.ask("GET", f"{guest.path}/events", {"host": "localhost"})
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-accel-buffering"] == "no"
            assert "content-length" not in answer.headers


# -- cancellation, at every point, without sockets


def test_a_stream_that_is_cancelled_anywhere_lets_go_and_can_be_resumed() -> None:
    async def scenario(trial: Trial) -> None:
        model = ScriptedModel(lambda _: (Say("One two three"),), pace=0.5)
        sent: list[bytes] = []
        async with open_stage(standard_cast(model)) as stage:
            session = stage.start()
            turn_id = session.begin_turn("Count, please.")
            with trio.CancelScope() as scope:
                trial.aim(scope.cancel)
                await respond(EventStream(session.subscribe(), session.session_id, frozenset(), 1.0), sent)
            assert stage.statistics().subscribers == 0
            commit = await session.finalize(turn_id).wait()
            assert commit.commit_outcome is CommitOutcome.OK
            ids = [line for line in b"".join(sent).split(b"\n") if line.startswith(b"id: ")]
            cursor = read_cursor(ids[-1][4:].decode()).after if ids else {}
            async with session.subscribe(after=cursor) as rest:
                await session.close()
                events = [event async for event in rest]
        got = [line[6:] for line in b"".join(sent).split(b"\n") if line.startswith(b'data: {"schema_v')]
        assert laws.check([*map(wire.decode, got), *events]) == []

    assert cancel_everywhere(scenario, orders=2, pairs=10).points > 20


async def respond(response: EventStream, sent: list[bytes]) -> None:
    """As a server would, for a client that goes away after the commit."""
    gone = trio.Event()

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message.get("body", b""))
        if b"commit_final" in sent[-1]:
            gone.set()

    await response({"type": "http", "state": {STREAMS: OpenStreams()}}, receive, send)


async def test_who_has_very_many_turns_can_still_come_back() -> None:
    async with open_house(limits=Limits(replay_turns=512)) as house:
        guest = await house.start()
        session = house.stage.session(guest.session_id)
        for _ in range(512):
            last = session.begin_turn("A room?")
            await session.finalize(last).wait()
        async with guest.follow() as stream:  # which counts as taken what was over before
            last_event_id = stream.last_event_id
            assert len(stream.cursor) >= 512
        turn_id = session.begin_turn("And now?")
        async with guest.follow(last_event_id) as stream:
            assert {event.turn_id async for event in stream.until_commit(turn_id)} == {turn_id}
