"""Faults of traces affect nothing else: digests, commits and turns are the same as without traces."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
import trio.testing
from attrs import frozen

from footlights import (
    CommitFinal,
    CommitOutcome,
    Intent,
    IntentType,
    SideEffects,
    Tool,
    ToolContext,
    TraceFiles,
    laws,
    open_stage,
)
from footlights.authority import patch
from footlights.authority.rules import accept
from footlights.testing import cancel_everywhere, only, take_turn
from footlights_actors import Call, Line, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights import Cast, Prompt
    from footlights.authority.rules import Ruling
    from footlights.events import JsonValue
    from footlights.testing import Trial

pytestmark = pytest.mark.usefixtures("interruptible")

TURNS = 6
TURN = b'{"turn":1}\n'


async def rent(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.turn_id))
    return True


def house(world: JsonValue, intents: tuple[Intent, ...]) -> Ruling:
    return accept(*(patch.add(f"/{intent.ref}", value=True) for intent in intents))


def script(prompt: Prompt) -> list[Line]:
    if prompt.exchanges:
        return [Say("It is "), Pause(0.5), Say("yours.")]
    return [Say("The attic? "), Call("rent", {})]


def tavern() -> Cast:
    tool = Tool(name="rent", run=rent, side_effects=SideEffects.IMMEDIATE)
    return standard_cast(ScriptedModel(script), tools=[tool], rules={"house": house})


async def digests(trace: TraceFiles | None, between: Callable[[], None] = lambda: None) -> list[str]:
    """Take some turns, with something done between them, and time for the trace to be written."""
    found: list[str] = []
    async with open_stage(tavern(), trace=trace) as stage:
        session = stage.start()
        for _ in range(TURNS):
            between()
            found.append(only(await take_turn(session, "The attic!"), CommitFinal).commit_digest)
            between()
            await trio.sleep(1)
        between()
        assert len(stage.world) == TURNS
    return found


# -- vandals


def delete_files(directory: Path) -> None:
    for path in directory.glob("*"):
        path.unlink(missing_ok=True)


def delete_directory(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def cut_files(directory: Path) -> None:
    for path in directory.glob("*"):
        os.truncate(path, path.stat().st_size // 2)


def scrawl(directory: Path) -> None:
    for path in directory.glob("*"):
        path.write_bytes(b'\xff\x00{"authoritative": true' * 50)


def put_a_file_in_the_way(directory: Path) -> None:
    delete_directory(directory)
    if not directory.exists():
        directory.write_bytes(b"mine")


def put_a_directory_in_the_way(directory: Path) -> None:
    if directory.is_dir():
        delete_files_only(directory)
        (directory / "interaction_trace.jsonl").mkdir(exist_ok=True)


def delete_files_only(directory: Path) -> None:
    for path in directory.glob("*"):
        if path.is_file():
            path.unlink()


VANDALS = [delete_files, delete_directory, cut_files, scrawl, put_a_file_in_the_way, put_a_directory_in_the_way]


@frozen
class Vandalised(TraceFiles):
    """Somebody is at the files just before and just after each time that they are written, and in between."""

    vandal: Callable[[Path], None]

    def append(self, turns: deque[bytes]) -> None:
        self.vandal(self.directory)
        while turns:
            one = deque([turns[0]])
            super().append(one)
            turns.popleft()
            self.vandal(self.directory)


@pytest.mark.parametrize("vandal", VANDALS, ids=lambda vandal: vandal.__name__)
async def test_ruining_the_traces_between_turns_changes_no_digest(
    tmp_path: Path, vandal: Callable[[Path], None], quiet_clock: trio.testing.MockClock
) -> None:
    traces = tmp_path / "traces"
    untouched = await digests(None)
    assert await digests(TraceFiles(traces, max_bytes=2_000), lambda: vandal(traces)) == untouched
    assert len(set(untouched)) == TURNS


@pytest.mark.parametrize("vandal", VANDALS, ids=lambda vandal: vandal.__name__)
async def test_ruining_the_traces_while_they_are_written_changes_no_digest(
    tmp_path: Path, vandal: Callable[[Path], None], quiet_clock: trio.testing.MockClock
) -> None:
    ruined = Vandalised(tmp_path / "traces", vandal, max_bytes=2_000)
    assert await digests(ruined) == await digests(None)


@pytest.mark.parametrize("vandal", [delete_files, delete_directory])
async def test_a_trace_that_was_deleted_begins_again(
    tmp_path: Path, vandal: Callable[[Path], None], quiet_clock: trio.testing.MockClock
) -> None:
    traces = tmp_path / "traces"
    async with open_stage(tavern(), trace=traces) as stage:
        session = stage.start()
        for _ in range(2):
            vandal(traces)
            await take_turn(session, "The attic!")
            await trio.sleep(1)
        assert stage.statistics().turns_untraced == 0
    lines = lines_of(traces)
    assert {orjson.loads(line)["turn_id"] for line in lines} == {"t1-000002"}
    assert laws.check_jsonl(lines) == []


# -- disks


async def test_a_full_disk_is_reported_once_and_traces_go_on_when_there_is_room(
    tmp_path: Path, quiet_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    files = TraceFiles(tmp_path)
    files.path.symlink_to("/dev/full")
    async with open_stage(tavern(), trace=files) as stage:
        session = stage.start()
        for _ in range(3):
            await take_turn(session, "The attic!")
            await trio.sleep(1)
        assert stage.statistics().turns_untraced == 3
        files.path.unlink()
        await take_turn(session, "The attic!")
    assert caplog.messages == ["The trace cannot be written: OSError 28", "3 turns were left out of the trace."]
    assert laws.check_jsonl(lines_of(tmp_path)) == []


async def test_a_full_disk_costs_none_of_the_traces_that_were_kept(
    tmp_path: Path, quiet_clock: trio.testing.MockClock
) -> None:
    files = TraceFiles(tmp_path, keep=3)
    kept = {f"interaction_trace.{number}.jsonl": b"%d\n" % number for number in (1, 2)}
    for name, content in {**kept, "interaction_trace.jsonl": b"0\n"}.items():
        (tmp_path / name).write_bytes(content)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with open_stage(tavern(), trace=files) as stage:
        session = stage.start()
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
        try:
            for _ in range(TURNS):
                await take_turn(session, "The attic!")
                await trio.sleep(1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert stage.statistics().turns_untraced == TURNS
        await take_turn(session, "The attic!")
    old = [(tmp_path / f"interaction_trace.{number}.jsonl").read_bytes() for number in (1, 2, 3)]
    assert old == [b"0\n", b"1\n", b"2\n"]
    assert laws.check_jsonl(lines_of(tmp_path)) == []


class BrokenLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("the collector of logs is down")


async def test_a_log_that_fails_disturbs_nothing(tmp_path: Path, quiet_clock: trio.testing.MockClock) -> None:
    handler = BrokenLog()
    logger = logging.getLogger("footlights.tracer")
    logger.addHandler(handler)
    in_the_way = tmp_path / "traces"
    in_the_way.write_bytes(b"mine")
    try:
        async with open_stage(tavern(), trace=in_the_way) as stage:
            session = stage.start()
            for _ in range(2):
                assert only(await take_turn(session, "The attic!"), CommitFinal).commit_outcome is CommitOutcome.OK
                await trio.sleep(1)
            in_the_way.unlink()
            await take_turn(session, "The attic!")
            assert stage.statistics().turns_untraced == 2
    finally:
        logger.removeHandler(handler)
    assert {orjson.loads(line)["turn_id"] for line in lines_of(in_the_way)} == {"t1-000003"}


async def test_a_tracer_that_dies_takes_the_stage_down_and_no_task_waits_for_it(
    tmp_path: Path, quiet_clock: trio.testing.MockClock
) -> None:
    class Deadly(TraceFiles):
        def append(self, turns: deque[bytes]) -> None:
            raise SystemExit(3)

    async def host() -> None:
        async with open_stage(tavern(), trace=Deadly(tmp_path)) as stage:
            await take_turn(stage.start(), "The attic!")
            await trio.sleep_forever()

    with trio.fail_after(60), pytest.raises(BaseExceptionGroup) as crash:
        await host()
    assert crash.group_contains(SystemExit)


async def test_a_trace_that_can_never_be_written_is_reported_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "traces"
    in_the_way.write_bytes(b"mine")
    async with open_stage(tavern(), trace=in_the_way) as stage:
        await take_turn(stage.start(), "The attic!")
    assert caplog.messages == ["The trace cannot be written: FileExistsError 17", "1 turns were left out of the trace."]
    assert in_the_way.read_bytes() == b"mine"


async def test_a_directory_under_the_name_of_the_trace_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = TraceFiles(tmp_path)
    (files.path / "precious").mkdir(parents=True)
    async with open_stage(tavern(), trace=files) as stage:
        await take_turn(stage.start(), "The attic!")
    assert caplog.messages[0] == "The trace cannot be written: IsADirectoryError 21"
    assert (files.path / "precious").is_dir()


def test_a_write_that_fails_half_way_leaves_no_half_turn(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path)
    files.append(deque([TURN]))
    turns = deque([TURN * 500])
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            files.append(turns)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert files.path.read_bytes() == TURN
    assert len(turns) == 1
    files.append(turns)
    assert files.path.read_bytes() == TURN * 501


def test_what_was_written_before_a_failure_is_not_said_to_be_missing(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, max_bytes=len(TURN))
    (tmp_path / "interaction_trace.1.jsonl" / "precious").mkdir(parents=True)
    turns = deque([TURN, TURN, TURN])
    with pytest.raises(OSError, match=r"interaction_trace\.1\.jsonl"):
        files.append(turns)
    assert len(turns) == 2
    assert files.path.read_bytes() == TURN


# -- cancels


def lines_of(directory: Path) -> list[bytes]:
    return (directory / "interaction_trace.jsonl").read_bytes().splitlines()


def test_a_traced_turn_may_be_canceled_at_any_point(tmp_path: Path) -> None:
    async def scenario(trial: Trial) -> None:
        directory = Path(tempfile.mkdtemp(dir=tmp_path))
        async with open_stage(tavern(), trace=directory) as stage:
            session = stage.start()
            trial.aim(session.cancel)
            await take_turn(session, "The attic!")
            await trio.sleep(1)
            trial.disarm()
            await take_turn(session, "The attic!")
        lines = lines_of(directory)
        assert laws.check_jsonl(lines) == []
        assert len({line["turn_id"] for line in map(orjson.loads, lines)}) == 2

    explored = cancel_everywhere(scenario, orders=2, pairs=4)
    assert explored.points > 20


def test_a_host_may_be_cancelled_at_any_point_and_the_trace_is_lawful(tmp_path: Path) -> None:
    directories: list[Path] = []

    async def scenario() -> None:
        directories.append(Path(tempfile.mkdtemp(dir=tmp_path)))
        async with open_stage(tavern(), trace=directories[-1]) as stage:
            await take_turn(stage.start(), "The attic!")
            await trio.sleep(1)

    cancel_everywhere(scenario, orders=2)
    traced = [path.read_bytes().splitlines() for each in directories for path in each.iterdir()]
    assert len(traced) > 20
    for lines in traced:
        assert laws.check_jsonl(lines) == []


def test_ctrl_c_while_the_last_turns_are_traced_leaves_unwrapped_and_loses_none(tmp_path: Path) -> None:
    class Interrupting(TraceFiles):
        def append(self, turns: deque[bytes]) -> None:
            signal.raise_signal(signal.SIGINT)
            for _ in range(3):  # the loop goes round, and the host is told
                trio.from_thread.run_sync(lambda: None)
            super().append(turns)

    async def host() -> None:
        async with open_stage(tavern(), trace=Interrupting(tmp_path)) as stage:
            stage.start().begin_turn("The attic!")
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt) as caught:
        trio.run(host)
    assert isinstance(caught.value.__context__, ZeroDivisionError)
    assert laws.check_jsonl(lines_of(tmp_path)) == []


# -- kills

PLAYER = """
import sys, trio
from pathlib import Path
from footlights import open_stage
from footlights.testing import take_turn
from footlights_actors import Say, ScriptedModel, standard_cast

async def play(folder):
    traced = folder / "interaction_trace.jsonl"
    cast = standard_cast(ScriptedModel(lambda _: [Say("Good evening.")]))
    async with open_stage(cast, ledger=folder / "inn.ledger", trace=folder) as stage:
        session = stage.start()
        told = False
        while True:
            await take_turn(session, "Hello?")
            if not told and traced.exists() and traced.stat().st_size:
                told = True
                print("traced", flush=True)

trio.run(play, Path(sys.argv[1]))
"""


async def test_what_a_killed_process_left_does_not_spoil_the_lines_of_the_next(tmp_path: Path) -> None:
    _play_until_killed(tmp_path)
    path = tmp_path / "interaction_trace.jsonl"
    left = path.read_bytes()
    whole = left[: left.rfind(b"\n") + 1]
    assert laws.check_jsonl(whole.splitlines(), complete=False) == []
    path.write_bytes(whole[:-9])  # torn, as by a kill in the middle of a write
    async with open_stage(tavern(), ledger=tmp_path / "inn.ledger", trace=tmp_path) as stage:
        await take_turn(stage.start(), "The attic!")
    lines = lines_of(tmp_path)
    (torn,) = [number for number, line in enumerate(lines, start=1) if not line.endswith(b"}")]
    found = laws.check_jsonl(lines)
    assert [violation.sentence for violation in found if violation.law == "json"] == [f"line {torn}: is not valid JSON"]
    assert laws.check_jsonl(lines[torn:]) == []
    assert {orjson.loads(line)["turn_id"] for line in lines[torn:]} == {"t2-000001"}


def _play_until_killed(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PLAYER, str(folder)], stdout=subprocess.PIPE) as player:
        assert player.stdout is not None
        try:
            assert player.stdout.readline() == b"traced\n"
        finally:
            player.kill()
