"""Traces are written beside the play: whole turns, rotated by size, and left out rather than waited for."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, cast

import orjson
import pytest
import trio
import trio.testing
from attrs import field, frozen

from footlights import (
    CommitFinal,
    EventType,
    Limits,
    MemoryLedger,
    RegistrationError,
    SessionParams,
    TraceFiles,
    laws,
    open_stage,
)
from footlights.events import EVENT_TYPES, SCHEMA_V, Payload, SeqRange, StreamEvent, TokenDelta, TurnAccepted
from footlights.stream.replay import Replay
from footlights.testing import Gate, take_turn
from footlights.testing.faults import FlakyLedger
from footlights.trace.tracer import EVENT_SIZE, Tracer
from footlights_actors import Flood, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from footlights import Cast

TURN = b'{"turn":1}\n'


def tavern(*lines: Say | Pause | Flood) -> Cast:
    return standard_cast(ScriptedModel(lambda _: lines or (Say("Good "), Say("evening."))))


def all_files(directory: Path) -> list[Path]:
    """From the oldest to the one that grows."""
    old = sorted(directory.glob("interaction_trace.*.jsonl"), reverse=True)
    return [*old, *directory.glob("interaction_trace.jsonl")]


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def turns_in(lines: Iterable[bytes]) -> list[str]:
    return list(dict.fromkeys(orjson.loads(line)["turn_id"] for line in lines))


def kept_turn(number: int = 1, text: str = "Hello") -> Replay:
    replay = Replay("s1", f"t{number}")
    replay.append(_event(TurnAccepted(), number), 0)
    for letter in text:
        replay.append_delta(letter, 100, 0.002, 0.5)
    return replay


def _event(payload: Payload, number: int = 1) -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1", f"t{number}", 0, 1, EVENT_TYPES[type(payload)], payload)


@frozen
class Gated(TraceFiles):
    """Files on a disk that hangs until somebody opens the gate."""

    gate: Gate = field(factory=Gate, kw_only=True)

    def append(self, turns: deque[bytes]) -> None:
        self.gate.wait()
        super().append(turns)


# -- what is written


@pytest.mark.shows("core-64", "core-65")
async def test_a_traced_turn_is_what_a_subscriber_sees_with_its_deltas_joined(tmp_path: Path) -> None:
    async with open_stage(tavern(), trace=tmp_path) as stage:
        events = await take_turn(stage.start(), "A room?")
    lines = [orjson.loads(line) for line in lines_of(tmp_path / "interaction_trace.jsonl")]
    seen = {event.seq: event for event in events if event.event_type is not EventType.TOKEN_DELTA}
    assert {line["seq"] for line in lines} >= set(seen)
    for line in lines:
        assert line["authoritative"] is False
        if line["seq"] in seen:
            event = seen[line["seq"]]
            assert (line["event_type"], line["mono_ts_ms"]) == (event.event_type, event.mono_ts_ms)
    (delta,) = [line["payload"] for line in lines if line["event_type"] == "token_delta"]
    assert (delta["chars"], delta["offset"]) == (len("Good evening."), 0)


async def test_a_trace_is_lawful_and_whole_when_the_stage_is_closed(tmp_path: Path) -> None:
    async with open_stage(tavern(), trace=str(tmp_path / "deep" / "down")) as stage:
        session = stage.start()
        for _ in range(3):
            await take_turn(session, "A room?")
    lines = lines_of(tmp_path / "deep" / "down" / "interaction_trace.jsonl")
    assert turns_in(lines) == ["t1-000001", "t1-000002", "t1-000003"]
    assert laws.check_jsonl(lines) == []


async def test_turns_are_written_while_the_stage_is_open(tmp_path: Path, quiet_clock: trio.testing.MockClock) -> None:
    async with open_stage(tavern(), trace=tmp_path) as stage:
        await take_turn(stage.start(), "A room?")
        await trio.sleep(1)
        assert turns_in(lines_of(tmp_path / "interaction_trace.jsonl")) == ["t1-000001"]


@pytest.mark.shows("core-66")
async def test_without_a_trace_nothing_is_written_and_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_stage(tavern()) as stage:
        await take_turn(stage.start(), "A room?")
        assert stage.statistics().turns_untraced == 0
    assert names_in(tmp_path) == []


async def test_a_long_turn_is_traced_whole(tmp_path: Path) -> None:
    lines = [line for number in range(60) for line in (Say(f"{number} "), Pause(0.0))]
    async with open_stage(tavern(*lines), trace=tmp_path) as stage:
        await take_turn(stage.start(), "Count!")
    assert laws.check_jsonl(lines_of(tmp_path / "interaction_trace.jsonl")) == []


async def test_turns_that_the_shutdown_interrupts_are_traced(tmp_path: Path) -> None:
    async with open_stage(tavern(Say("Well,"), Pause(1_000)), trace=tmp_path) as stage:
        session = stage.start()
        session.begin_turn("A room?")
        session.begin_turn("And an ale?")
        await trio.testing.wait_all_tasks_blocked()
    lines = lines_of(tmp_path / "interaction_trace.jsonl")
    assert turns_in(lines) == ["t1-000001", "t1-000002"]
    assert laws.check_jsonl(lines) == []


async def test_a_turn_whose_commit_is_in_doubt_is_traced_without_one(
    tmp_path: Path, quiet_clock: trio.testing.MockClock
) -> None:
    ledger = FlakyLedger(MemoryLedger(), delay=60.0)
    async with open_stage(tavern(), ledger=ledger, limits=Limits(shutdown_deadline=1.0), trace=tmp_path) as stage:
        stage.start().begin_turn("A room?")
        await trio.sleep(1)
    lines = lines_of(tmp_path / "interaction_trace.jsonl")
    assert laws.check_jsonl(lines, complete=False) == []
    assert [violation.law for violation in laws.check_jsonl(lines)] == ["one_commit"]


async def test_a_cancelled_host_still_gets_its_last_turns(tmp_path: Path, quiet_clock: trio.testing.MockClock) -> None:
    with trio.move_on_after(1.5):
        async with open_stage(tavern(), trace=tmp_path) as stage:
            await take_turn(stage.start(), "A room?")
            stage.start().begin_turn("An ale?")
            await trio.sleep_forever()
    lines = lines_of(tmp_path / "interaction_trace.jsonl")
    assert len({orjson.loads(line)["session_id"] for line in lines}) == 2
    assert laws.check_jsonl(lines) == []


def test_joined_deltas_declare_what_is_in_them() -> None:
    replay = kept_turn(text="abc")
    replay.append(_event_at(TokenDelta("d", 3), 4), 0)
    events = list(replay.events())
    assert [event.seq for event in events] == [0, 3, 4]
    assert events[1].payload == TokenDelta("abc", 0, dropped_seq_ranges=(SeqRange(1, 2),))
    assert events[2].payload == TokenDelta("d", 3)


def _event_at(payload: Payload, seq: int) -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1", "t1", seq, 5, EVENT_TYPES[type(payload)], payload)


# -- which files


async def test_a_stage_without_a_ledger_begins_a_new_file_because_its_ids_come_again(tmp_path: Path) -> None:
    for _ in range(2):
        async with open_stage(tavern(), trace=tmp_path) as stage:
            await take_turn(stage.start(), "A room?")
    assert [path.name for path in all_files(tmp_path)] == ["interaction_trace.1.jsonl", "interaction_trace.jsonl"]
    for path in all_files(tmp_path):
        assert turns_in(lines_of(path)) == ["t1-000001"]
        assert laws.check_jsonl(lines_of(path)) == []


async def test_a_stage_with_a_ledger_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for _ in range(2):
        async with open_stage(tavern(), ledger=tmp_path / "inn.ledger", trace=tmp_path) as stage:
            await take_turn(stage.start(SessionParams(session_id="inn")), "A room?")
    (path,) = all_files(tmp_path)
    assert turns_in(lines_of(path)) == ["t1-000001", "t2-000001"]
    assert laws.check_jsonl(lines_of(path)) == []


async def test_rotated_files_are_lawful_each_on_its_own_and_lose_nothing(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=4_000, keep=50)
    async with open_stage(tavern(), trace=files) as stage:
        session = stage.start()
        for _ in range(20):
            await take_turn(session, "A room?")
    paths = all_files(tmp_path)
    assert len(paths) > 5
    traced: list[str] = []
    for path in sorted(paths, key=lambda path: turns_in(lines_of(path))):
        assert path.stat().st_size <= 4_000
        assert laws.check_jsonl(lines_of(path)) == []
        traced += turns_in(lines_of(path))
    assert traced == [f"t1-{number:06}" for number in range(1, 21)]


def test_only_so_many_old_files_are_kept_and_the_newest_is_number_one(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=1, keep=2)
    for number in range(6):
        files.append(deque([b"%d\n" % number]))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "interaction_trace.jsonl": b"5\n",
        "interaction_trace.1.jsonl": b"4\n",
        "interaction_trace.2.jsonl": b"3\n",
    }


def test_no_old_file_is_kept_if_none_is_wanted(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=1, keep=0)
    files.append(deque([b"1\n", b"2\n", b"3\n"]))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"3\n"]


@pytest.mark.parametrize("keep", [0, 1])
def test_a_file_that_is_put_aside_makes_room_for_a_new_one(tmp_path: Path, keep: int) -> None:
    files = TraceFiles(tmp_path, keep=keep)
    files.put_aside()
    files.append(deque([b"1\n"]))
    files.append(deque([b"2\n"]))
    files.put_aside()
    files.append(deque([b"3\n"]))
    assert [path.read_bytes() for path in all_files(tmp_path)] == [b"1\n2\n", b"3\n"][1 - keep :]


def test_a_file_is_filled_to_its_size_and_a_turn_is_never_split(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=2 * len(TURN) + 1, keep=9)
    large = b"x" * 1_000 + b"\n"
    turns = deque([TURN, TURN, TURN, large, TURN])
    files.append(turns)
    assert not turns
    assert [path.read_bytes() for path in all_files(tmp_path)] == [TURN * 2, TURN, large, TURN]


def test_an_old_file_that_is_gone_is_not_missed(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=1, keep=3)
    for number in range(3):
        files.append(deque([b"%d\n" % number]))
    (tmp_path / "interaction_trace.1.jsonl").unlink()
    files.append(deque([b"3\n"]))
    assert [path.read_bytes() for path in all_files(tmp_path)] == [b"0\n", b"2\n", b"3\n"]


def test_an_empty_file_is_never_put_aside(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, keep=2)
    files.append(deque([b"1\n"]))
    files.put_aside()
    for _ in range(3):
        files.path.touch()
        files.put_aside()
    assert [path.read_bytes() for path in all_files(tmp_path)] == [b"1\n", b""]


def test_an_attempt_that_failed_half_way_costs_no_file_when_it_is_made_again(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=1, keep=4)
    for number in range(4):
        files.append(deque([b"%d\n" % number]))
    (tmp_path / "interaction_trace.1.jsonl").rename(tmp_path / "elsewhere")
    (tmp_path / "interaction_trace.1.jsonl" / "in_the_way").mkdir(parents=True)
    for _ in range(5):
        with pytest.raises(OSError, match=r"interaction_trace\.1\.jsonl"):
            files.put_aside()
    assert {path.read_bytes() for path in all_files(tmp_path) if path.is_file()} == {b"0\n", b"1\n", b"3\n"}


def test_what_was_torn_is_left_and_the_next_turn_starts_on_a_line_of_its_own(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path)
    files.path.write_bytes(TURN + TURN[:4])
    files.append(deque([TURN]))
    files.append(deque([TURN]))
    assert files.path.read_bytes() == TURN + TURN[:4] + b"\n" + TURN + TURN


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"max_bytes": 0}, "max_bytes is 0; it must be a whole number of at least 1."),
        ({"max_bytes": 1.5}, "max_bytes is 1.5; it must be a whole number of at least 1."),
        ({"keep": -1}, "keep is -1; it must be a whole number of at least 0."),
        ({"keep": None}, "keep is None; it must be a whole number of at least 0."),
        ({"directory": 5}, "The trace directory is a int; it must be a path."),
        ({"directory": "a\0b"}, "The trace directory has a null character in its name."),
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(RegistrationError) as refused:
        TraceFiles(**{"directory": "traces", **values})  # type: ignore[arg-type]  # on purpose
    assert str(refused.value) == sentence


@pytest.mark.parametrize("trace", ["\0", 5, b"traces", object(), True])
async def test_a_directory_that_makes_no_sense_is_refused_before_anything_is_opened(
    tmp_path: Path, trace: object
) -> None:
    with pytest.raises(RegistrationError):
        async with open_stage(tavern(), ledger=tmp_path / "inn.ledger", trace=cast("str", trace)):
            raise AssertionError("it opened")
    assert names_in(tmp_path) == []


# -- never in the way


async def test_taking_a_turn_is_a_plain_call(tmp_path: Path) -> None:
    tracer = Tracer(TraceFiles(tmp_path), fresh=True, shutdown_deadline=1.0)
    with trio.testing.assert_no_checkpoints():
        tracer.trace(kept_turn())
        tracer.close()


async def test_turns_past_the_limit_are_left_out_whole_and_counted_once(
    tmp_path: Path, quiet_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    files = Gated(tmp_path)
    tracer = Tracer(files, fresh=False, shutdown_deadline=60.0, max_waiting_turns=3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tracer.run)
        tracer.trace(kept_turn(1))
        await trio.sleep(1)  # the first one is in the thread now, and hangs
        for number in range(2, 8):
            tracer.trace(kept_turn(number))
        assert tracer.dropped == 3
        files.gate.open()
        await trio.sleep(1)
        tracer.trace(kept_turn(8))
        tracer.close()
    assert turns_in(lines_of(files.path)) == ["t1", "t2", "t3", "t4", "t8"]
    assert tracer.dropped == 3
    assert caplog.messages == ["3 turns were left out of the trace."]


async def test_waiting_turns_are_limited_in_size_and_their_room_is_given_back(
    tmp_path: Path, quiet_clock: trio.testing.MockClock
) -> None:
    files = TraceFiles(tmp_path)
    tracer = Tracer(files, fresh=False, shutdown_deadline=60.0, max_waiting_size=EVENT_SIZE + 10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tracer.run)
        tracer.trace(kept_turn(1, "x" * 11))  # would never fit
        tracer.trace(kept_turn(2, "x" * 10))
        tracer.trace(kept_turn(3, ""))
        assert tracer.dropped == 2
        await trio.sleep(1)
        tracer.trace(kept_turn(4, "x" * 10))
        tracer.close()
    assert tracer.dropped == 2
    assert turns_in(lines_of(files.path)) == ["t2", "t4"]


async def test_what_no_line_can_say_is_left_out_and_the_rest_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = TraceFiles(tmp_path)
    tracer = Tracer(files, fresh=False, shutdown_deadline=60.0)
    strange = kept_turn(2)
    strange.append(StreamEvent(SCHEMA_V, "s1", "t2", 6, 5, EventType.TURN_FINAL, TurnAccepted(ext=object())), 0)  # type: ignore[arg-type]  # on purpose
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tracer.run)
        for turn in (kept_turn(1), strange, kept_turn(3)):
            tracer.trace(turn)
        tracer.close()
    assert turns_in(lines_of(files.path)) == ["t1", "t3"]
    assert tracer.dropped == 1
    assert caplog.messages == [
        "t2 of s1 cannot be traced: AttributeError",
        "1 turns were left out of the trace.",
    ]


async def test_a_disk_that_hangs_delays_no_turn_and_no_commit(
    tmp_path: Path, quiet_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    files = Gated(tmp_path)
    async with open_stage(tavern(), limits=Limits(shutdown_deadline=5.0), trace=files) as stage:
        began = trio.current_time()
        session = stage.start()
        for _ in range(5):
            events = await take_turn(session, "A room?")
            assert isinstance(events[-1].payload, CommitFinal)
        assert trio.current_time() == began
        await trio.sleep(1)
        await take_turn(session, "A room?")
        assert trio.current_time() == began + 1
    assert trio.current_time() == began + 6  # a second of sleep, and the deadline
    assert caplog.messages == ["6 turns were left out of the trace."]
    files.gate.open()
