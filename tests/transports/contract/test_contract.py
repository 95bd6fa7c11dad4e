"""Contract of a session: every test runs once for each transport through which a session can be used."""

from __future__ import annotations

from contextlib import AsyncExitStack
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    Busy,
    BusyRule,
    CommitFinal,
    CommitOutcome,
    EventType,
    FootlightsError,
    InterruptReason,
    InvalidCommand,
    Limits,
    SessionClosed,
    SessionParams,
    TokenDelta,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    UnknownSession,
    UnknownTurn,
    laws,
)
from footlights.testing import only, payloads
from footlights_actors import standard_cast
from tests.transports.contract.cue_model import CuedModel
from tests.transports.contract.in_process import memory, websocket
from tests.transports.contract.on_a_thread import thread
from tests.transports.contract.over_http import http

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable

    from footlights import StreamEvent
    from tests.transports.contract.session_api import Door, Guest, House, Stream

DOORS: dict[str, Door] = {"memory": memory, "websocket": websocket, "http": http, "thread": thread}
QUEUE, INTERRUPT, REJECT, CONCURRENT = (
    TurnParams(busy=rule) for rule in (BusyRule.QUEUE, BusyRule.INTERRUPT, BusyRule.REJECT, BusyRule.CONCURRENT)
)
TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}
LIMITS = Limits(max_subscribers=3, max_input_bytes=1_000, replay_turns=2, max_queued_turns=8)


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Door:
    return DOORS[request.param]


@pytest.fixture
def model() -> CuedModel:
    return CuedModel()


@pytest.fixture
async def house(door: Door, model: CuedModel) -> AsyncGenerator[House, None]:
    with trio.fail_after(60):  # a promise that breaks may show as a hang
        async with door(standard_cast(model), LIMITS) as opened:
            yield opened


@pytest.fixture
async def guest(house: House) -> Guest:
    return await house.start()


def of(events: Iterable[StreamEvent], turn_id: str) -> list[StreamEvent]:
    return [event for event in events if event.turn_id == turn_id]


def said(events: Iterable[StreamEvent]) -> str:
    return "".join(payload.delta for payload in payloads(events, TokenDelta))


def began_at(events: Iterable[StreamEvent], turn_id: str) -> int:
    """When it was first heard of again after it had been accepted. The order between turns means nothing, time does."""
    return next(event.mono_ts_ms for event in of(events, turn_id) if event.seq > 0)


def committed_at(events: Iterable[StreamEvent], turn_id: str) -> int:
    return of(events, turn_id)[-1].mono_ts_ms


async def until_said(stream: Stream, word: str, turn_id: str | None = None) -> list[StreamEvent]:
    """Take events until this word was said, by this turn or by any."""
    got: list[StreamEvent] = []
    async for event in stream:
        got.append(event)
        if word in said(got if turn_id is None else of(got, turn_id)):
            return got
    raise AssertionError("the stream ended before")


async def whole(stream: Stream, turn_id: str) -> list[StreamEvent]:
    return [event async for event in stream.until_commit(turn_id)]


# -- turns


async def test_the_first_event_of_a_turn_is_that_it_was_accepted(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("A room?")
        event = await anext(aiter(stream))
    assert (event.session_id, event.turn_id, event.seq) == (guest.session_id, turn_id, 0)
    assert event.payload == TurnAccepted(turns_ahead=0)


@pytest.mark.shows("core-5")
async def test_a_turn_is_delivered_in_order_and_ends_once(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        events = await whole(stream, await guest.begin_turn("Good evening friend"))
    assert laws.check(events) == []
    assert [event.event_type for event in events[-2:]] == [EventType.TURN_FINAL, EventType.COMMIT_FINAL]
    assert said(events) == only(events, TurnFinal).text == "Good evening friend"


async def test_one_request_id_is_one_turn_while_it_is_open_while_it_is_retained_and_afterwards(
    guest: Guest, model: CuedModel
) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("~go on", REJECT, request_id="mine")
        assert await guest.begin_turn("~go on", REJECT, request_id="mine") == turn_id
        with pytest.raises(InvalidCommand):
            await guest.begin_turn("Go away", REJECT, request_id="mine")
        model.cue("go")
        events = await whole(stream, turn_id)
        assert await guest.begin_turn("~go on", REJECT, request_id="mine") == turn_id
        for number in range(LIMITS.replay_turns):
            events += await whole(stream, await guest.begin_turn("Go on", request_id=f"{number}"))
        assert await guest.begin_turn("The id alone decides now", request_id="mine") == turn_id
        last = await guest.begin_turn("Go on", request_id="another")
        events += await whole(stream, last)
    assert laws.check(events) == []
    assert len({event.turn_id for event in events}) == 2 + LIMITS.replay_turns


@pytest.mark.parametrize("request_id", ["", "r" * 129])
async def test_a_malformed_request_id_is_refused_and_begins_nothing(guest: Guest, request_id: str) -> None:
    with pytest.raises(InvalidCommand, match="1 to 128 printable characters"):
        await guest.begin_turn("A room?", request_id=request_id)
    assert await guest.begin_turn("A room?") == "t1-000001"


async def test_queued_turns_are_accepted_now_and_told_one_after_the_other(guest: Guest, model: CuedModel) -> None:
    async with guest.subscribe() as stream:
        turns = [await guest.begin_turn(f"~go {number}", QUEUE) for number in range(3)]
        model.cue("go")
        events = [event for turn_id in turns for event in await whole(stream, turn_id)]
    accepted = {each.turn_id: each.payload for each in events if isinstance(each.payload, TurnAccepted)}
    assert accepted == {turn_id: TurnAccepted(turns_ahead=ahead) for ahead, turn_id in enumerate(turns)}
    assert [only(of(events, turn_id), TurnFinal).text for turn_id in turns] == ["go 0", "go 1", "go 2"]
    for before, after in pairwise(turns):
        assert committed_at(events, before) <= began_at(events, after)


async def test_a_barge_in_interrupts_what_is_open_and_runs_after_it(guest: Guest, model: CuedModel) -> None:
    async with guest.subscribe() as stream:
        running = await guest.begin_turn("Once ~upon a time")
        queued = await guest.begin_turn("And then?")
        events = await until_said(stream, "Once")
        barged = await guest.begin_turn("Fire!", INTERRUPT)
        for turn_id in (running, queued, barged):
            events += await whole(stream, turn_id)
    reasons = {each.turn_id: each.payload.reason for each in events if isinstance(each.payload, TurnInterrupted)}
    assert reasons == dict.fromkeys((running, queued), InterruptReason.BARGE_IN)
    assert only(events, TurnFinal).text == "Fire!"
    assert max(committed_at(events, turn_id) for turn_id in (running, queued)) <= began_at(events, barged)


async def test_reject_refuses_while_a_turn_is_open_and_changes_nothing(guest: Guest, model: CuedModel) -> None:
    async with guest.subscribe() as stream:
        first = await guest.begin_turn("~go", REJECT)
        with pytest.raises(Busy):
            await guest.begin_turn("A beer?", REJECT)
        model.cue("go")
        assert {event.turn_id for event in await whole(stream, first)} == {first}
    assert await guest.begin_turn("A beer?", REJECT) != first


async def test_concurrent_turns_are_told_beside_each_other(guest: Guest, model: CuedModel) -> None:
    async with guest.subscribe() as stream:
        turns = [await guest.begin_turn(f"{word} ~go", CONCURRENT) for word in ("One", "Two")]
        events: list[StreamEvent] = []
        while {said(of(events, turn_id)) for turn_id in turns} != {"One", "Two"}:
            events.append(await anext(aiter(stream)))
        model.cue("go")
        for turn_id in turns:
            events += await whole(stream, turn_id)
    assert laws.check(events) == []
    assert [said(of(events, turn_id)) for turn_id in turns] == ["One go", "Two go"]


async def test_the_queue_has_a_limit(guest: Guest) -> None:
    for _ in range(1 + LIMITS.max_queued_turns):
        await guest.begin_turn("~never")
    with pytest.raises(Busy, match="max_queued_turns"):
        await guest.begin_turn("One more?")


@pytest.mark.parametrize(
    ("text", "params", "code"),
    [
        ("", None, "invalid_command"),
        (" \n", None, "invalid_command"),
        ("\ud83c", None, "invalid_command"),
        ("A room?", TurnParams(model="nobody"), "invalid_command"),
        ("A room?", TurnParams(workload="nothing"), "invalid_command"),
        ("A room?", TurnParams(persona="nobody"), "invalid_command"),
        ("x" * 1_001, None, "too_large"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_code_and_changes_nothing(
    guest: Guest, text: str, params: TurnParams | None, code: str
) -> None:
    with pytest.raises(FootlightsError) as refused:
        await guest.begin_turn(text, params)
    assert refused.value.code == code
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("A room?")
        assert {event.turn_id for event in await whole(stream, turn_id)} == {turn_id}


# -- cancelling


@pytest.mark.shows("core-59")
async def test_a_cancel_wins_once_and_the_turn_is_interrupted(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("Once ~upon a time")
        events = await until_said(stream, "Once")
        assert await guest.cancel(turn_id) == (turn_id,)
        assert await guest.cancel(turn_id) == ()
        events += await whole(stream, turn_id)
        assert await guest.cancel(turn_id) == ()
    assert laws.check(events, canceled=[turn_id]) == []
    assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED
    commit = only(events, CommitFinal)
    assert commit.commit_outcome is CommitOutcome.FAIL_CLOSED
    assert [issue.code for issue in commit.issues] == ["turn_interrupted"]


async def test_a_cancel_that_comes_too_late_changes_nothing(guest: Guest) -> None:
    turn_id = await guest.begin_turn("Good evening")
    decision = await guest.finalize(turn_id)
    assert await guest.cancel(turn_id) == await guest.cancel() == ()
    assert await guest.finalize(turn_id) == decision
    assert decision.commit_outcome is CommitOutcome.OK


@pytest.mark.shows("core-59")
async def test_canceling_everything_wins_every_open_turn_of_this_session_only(house: House, model: CuedModel) -> None:
    guest, neighbour = await house.start(), await house.start()
    turns = [await guest.begin_turn("~never") for _ in range(3)]
    theirs = await neighbour.begin_turn("~go")
    assert sorted(await guest.cancel()) == turns
    model.cue("go")
    assert (await neighbour.finalize(theirs)).commit_outcome is CommitOutcome.OK


@pytest.mark.parametrize("turn_id", ["t1-", "t1-000009", "t9-000001", "nonsense"])
@pytest.mark.parametrize(
    "call",
    [
        lambda guest, turn_id: guest.cancel(turn_id),
        lambda guest, turn_id: guest.finalize(turn_id),
        lambda guest, turn_id: guest.heard(turn_id, 0),
    ],
    ids=["cancel", "finalize", "heard"],
)
async def test_an_id_that_was_never_given_out_is_unknown(
    guest: Guest, call: Callable[[Guest, str], Awaitable[object]], turn_id: str
) -> None:
    await guest.begin_turn("~never")
    with pytest.raises(UnknownTurn):
        await call(guest, turn_id)


# -- the commit


async def test_finalize_waits_for_the_commit_that_the_stream_tells(guest: Guest, model: CuedModel) -> None:
    decisions: list[str] = []

    async def finalize(turn_id: str) -> None:
        decisions.append((await guest.finalize(turn_id)).commit_digest)

    async with guest.subscribe() as stream, trio.open_nursery() as nursery:
        turn_id = await guest.begin_turn("Once ~go")
        nursery.start_soon(finalize, turn_id)
        events = await until_said(stream, "Once")
        assert decisions == []
        model.cue("go")
        events += await whole(stream, turn_id)
    assert decisions == [only(events, CommitFinal).commit_digest]


async def test_every_turn_has_one_terminal_and_one_commit_whatever_becomes_of_it(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        turns = [await guest.begin_turn("Good evening")]
        turns.append(await guest.begin_turn("~never"))
        turns.append(await guest.begin_turn("~never"))
        events = await whole(stream, turns[0])
        await guest.cancel(turns[2])
        turns.append(await guest.begin_turn("Fire!", INTERRUPT))
        turns.append(await guest.begin_turn("~never"))
        await guest.cancel(turns[-1])
        events += [event async for event in stream.until_commit(turns[-1])]
        await guest.close()
        events += [event async for event in stream]
    assert laws.check(events, canceled=[turns[2], turns[-1]]) == []
    for turn_id in turns:
        kinds = [event.event_type for event in of(events, turn_id)]
        assert sum(kind in TERMINAL for kind in kinds) == kinds.count(EventType.COMMIT_FINAL) == 1


# -- what was heard


async def test_an_interruption_carries_what_was_heard(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("Once upon ~a time")
        events = await until_said(stream, "Once upon")
        await guest.heard(turn_id, events[-1].seq)
        await guest.heard(turn_id, 1)
        await guest.cancel(turn_id)
        heard = only(await whole(stream, turn_id), TurnInterrupted).heard
    assert heard is not None
    assert (heard.seq, heard.text) == (events[-1].seq, "Once upon")


async def test_what_was_not_said_cannot_have_been_heard(guest: Guest) -> None:
    turn_id = await guest.begin_turn("~never")
    with pytest.raises(InvalidCommand):
        await guest.heard(turn_id, 99)


# -- subscribers


@pytest.mark.shows("core-58")
async def test_every_subscriber_gets_the_same_events(guest: Guest) -> None:
    async with guest.subscribe() as one, guest.subscribe() as two:
        turn_id = await guest.begin_turn("Good evening friend")
        both = [await whole(stream, turn_id) for stream in (one, two)]
    assert said(both[0]) == said(both[1]) == "Good evening friend"
    assert both[0][-2:] == both[1][-2:]


@pytest.mark.parametrize("taken", range(7))
async def test_coming_back_at_any_point_gives_exactly_the_rest(guest: Guest, taken: int) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("Good evening my friend")
        events = [await anext(aiter(stream)) for _ in range(taken)]
        cursor = dict(stream.cursor)
    await guest.finalize(turn_id)
    async with guest.subscribe(after=cursor) as stream:
        events += await whole(stream, turn_id)
    assert laws.check(events) == []
    assert only(events, TurnFinal).text == said(events) == "Good evening my friend"


@pytest.mark.parametrize("word", ["One", "two", "three"])
async def test_coming_back_while_the_turn_goes_on_skips_and_repeats_nothing(
    guest: Guest, model: CuedModel, word: str
) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("One two three ~four five")
        events = await until_said(stream, word)
        cursor = dict(stream.cursor)
    async with guest.subscribe(after=cursor) as stream:
        model.cue("four")
        events += await whole(stream, turn_id)
    assert laws.check(events) == []
    assert said(events) == "One two three four five"


async def test_a_newcomer_gets_unfinished_turns_from_their_beginning_and_no_finished_ones(
    guest: Guest, model: CuedModel
) -> None:
    await guest.finalize(await guest.begin_turn("Before"))
    turns = [await guest.begin_turn("~go"), await guest.begin_turn("And then?")]
    async with guest.subscribe() as stream:
        model.cue("go")
        events = [event for turn_id in turns for event in await whole(stream, turn_id)]
    assert {event.turn_id: event.seq for event in reversed(events)} == dict.fromkeys(turns, 0)
    assert {final.text for final in payloads(events, TurnFinal)} == {"go", "And then?"}


async def test_an_empty_cursor_gets_everything_that_is_retained(guest: Guest) -> None:
    turns = [await guest.begin_turn(f"Turn {number}") for number in range(4)]
    await guest.finalize(turns[-1])
    async with guest.subscribe(after={}) as stream:
        await guest.close()
        events = [event async for event in stream]
    assert laws.check(events) == []
    assert {event.turn_id for event in events} == set(turns[-LIMITS.replay_turns :])


async def test_a_turn_taken_whole_is_not_told_again(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        first = await guest.begin_turn("One")
        await whole(stream, first)
        cursor = dict(stream.cursor)
    async with guest.subscribe(after=cursor) as stream:
        second = await guest.begin_turn("Two")
        assert {event.turn_id for event in await whole(stream, second)} == {second}


@pytest.mark.parametrize("had_seen_a_turn", [True, False])
async def test_turns_that_ended_without_a_subscriber_are_delivered_though_they_are_not_retained(
    guest: Guest, had_seen_a_turn: bool
) -> None:
    events: list[StreamEvent] = []
    async with guest.subscribe() as stream:
        if had_seen_a_turn:
            events += await whole(stream, await guest.begin_turn("One"))
        cursor = dict(stream.cursor)
    turns = [await guest.begin_turn(f"Turn {number}") for number in range(LIMITS.replay_turns + 3)]
    await guest.finalize(turns[-1])
    async with guest.subscribe(after=cursor) as stream:
        await guest.close()
        events += [event async for event in stream]
    assert laws.check(events) == []
    commits = [event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL]
    assert sorted(commits)[had_seen_a_turn:] == turns, "each once"


async def until_seen(stream: Stream, kinds: Collection[EventType]) -> list[StreamEvent]:
    """Take events until one of these kinds came; none at all if there are no kinds."""
    got: list[StreamEvent] = []
    while kinds and not any(event.event_type in kinds for event in got):
        got.append(await anext(aiter(stream)))
    return got


@pytest.mark.parametrize("canceled", [False, True])
@pytest.mark.parametrize("seen", [(), (EventType.TURN_ACCEPTED,), (EventType.TOKEN_DELTA,), TERMINAL])
async def test_a_turn_that_is_not_retained_ends_once_however_often_its_reader_was_cut_off(
    guest: Guest, model: CuedModel, seen: Collection[EventType], canceled: bool
) -> None:
    async def end() -> None:
        if canceled:
            await guest.cancel(turn_id)
        else:
            model.cue("go")

    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("One two ~go three")
        if seen is TERMINAL:
            await end()
        events = await until_seen(stream, seen)
        cursor, ended = dict(stream.cursor), stream.terminal_seen
    if seen is not TERMINAL:
        await end()
    assert ended == ({turn_id} if seen is TERMINAL else set())
    decided = await guest.finalize(turn_id)
    for number in range(LIMITS.replay_turns):
        await guest.finalize(await guest.begin_turn(f"Turn {number}"))
    while turn_id not in {event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL}:
        async with guest.subscribe({**cursor, turn_id: cursor.get(turn_id, -1)}, ended) as stream:
            events.append(await anext(aiter(stream)))
            cursor, ended = dict(stream.cursor), stream.terminal_seen
    assert {event.turn_id for event in events} == {turn_id}
    assert laws.check(events, canceled=[turn_id] if canceled else []) == []
    assert sum(event.event_type in TERMINAL for event in events) == 1
    assert only(events, CommitFinal).commit_digest == decided.commit_digest
    assert ended == set()
    if canceled:
        assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED
    else:
        assert only(events, TurnFinal).text_forgotten is (seen is not TERMINAL)


async def test_a_cursor_outside_the_turn_is_refused(guest: Guest) -> None:
    turn_id = await guest.begin_turn("~never")
    with pytest.raises(InvalidCommand):
        async with guest.subscribe(after={turn_id: 99}):
            raise AssertionError("nobody gets in")


async def test_a_session_has_only_so_many_subscribers(guest: Guest) -> None:
    async with AsyncExitStack() as stack:

        async def subscribe_often() -> None:
            for _ in range(LIMITS.max_subscribers + 1):
                await stack.enter_async_context(guest.subscribe())

        with pytest.raises(Busy, match="max_subscribers"):
            await subscribe_often()


async def test_losing_every_subscriber_is_not_a_cancel(guest: Guest, model: CuedModel) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("Once ~go")
        await until_said(stream, "Once")
    model.cue("go")
    assert (await guest.finalize(turn_id)).commit_outcome is CommitOutcome.OK


@pytest.mark.shows("core-14")
async def test_a_subscriber_that_reads_late_gets_the_ranges_that_it_missed(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("word " * 190)
        await guest.finalize(turn_id)
        events = await whole(stream, turn_id)
    assert laws.check(events) == []
    assert only(events, TurnFinal).text == " ".join(["word"] * 190)


async def test_leaving_the_loop_early_leaves_the_stream_as_it_is(guest: Guest) -> None:
    async with guest.subscribe() as stream:
        turn_id = await guest.begin_turn("Good evening")
        async for event in stream.until_commit(turn_id):
            assert event.seq == 0
            break
        rest = await whole(stream, turn_id)
        assert (rest[0].seq, said(rest)) == (1, "Good evening")
        assert [event async for event in stream.until_commit(turn_id)] == []


# -- sessions


@pytest.mark.shows("core-61")
async def test_closing_interrupts_what_is_open_and_ends_every_stream(guest: Guest) -> None:
    async with guest.subscribe() as stream, guest.subscribe() as other:
        turns = [await guest.begin_turn("Once ~upon") for _ in range(2)]
        await guest.close()
        events = [event async for event in stream]
        others = [event async for event in other]
    assert laws.check(events) == laws.check(others) == []
    for each in (events, others):
        reasons = {event.turn_id: event.payload.reason for event in each if isinstance(event.payload, TurnInterrupted)}
        assert reasons == dict.fromkeys(turns, InterruptReason.SESSION_CLOSED)


async def test_a_closed_session_takes_no_turn_and_no_subscriber(guest: Guest) -> None:
    await guest.close()
    await guest.close()
    # A server forgets who is gone: then it says that there is no such session.
    with pytest.raises((SessionClosed, UnknownSession)):
        await guest.begin_turn("Anybody?")
    with pytest.raises((SessionClosed, UnknownSession)):
        async with guest.subscribe():
            raise AssertionError("nobody gets in")


async def test_a_session_may_have_a_name_and_no_two_the_same(house: House) -> None:
    guest = await house.start(SessionParams(session_id="inn"))
    assert guest.session_id == "inn"
    with pytest.raises(InvalidCommand):
        await house.start(SessionParams(session_id="inn"))
    await guest.close()
    assert (await house.start(SessionParams(session_id="inn"))).session_id == "inn"


async def test_sessions_do_not_hear_each_other(house: House) -> None:
    inn, barn = await house.start(), await house.start()
    async with inn.subscribe() as stream:
        await barn.finalize(await barn.begin_turn("Moo"))
        turn_id = await inn.begin_turn("A room?")
        events = await whole(stream, turn_id)
    assert {event.session_id for event in events} == {inn.session_id}
