"""`make bench-world`: worlds from 1 KB to 100 MB, and worlds of odd shapes, on this machine's disk, in process.

For each world: turns through a stage (final to commit, commits a second with 1, 8 and 64 writers and 1 and 5 rules, the
lateness of a task that sleeps 1 ms meanwhile), bytes written a commit, memory, and the time to open its ledger again.
The ledger of the largest world gets a long history first. Odd shapes are compared with an even world.
"""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from footlights import EventType, Intent, IntentType, TurnParams, open_stage
from footlights.authority import JsonWorld, JudgeRequest, RuleBook, SqliteLedger, accept, judge, patch
from footlights.ids import turn_id
from footlights_actors import standard_cast
from footlights_bench.lib.percentiles import percentile
from footlights_bench.lib.progress import say
from suites.lib.figures import Aim, Figure, latency_figure
from suites.lib.report import in_trio, run_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from footlights import Cast, InteractionContext, InteractionSession
    from footlights.authority import CommitRecord, Rule, Ruling

_WAIT = "turn_final to commit_final, p50"
_CPU = "CPU of a commit"
_TURN = TurnParams(workload="visit")
_ROOM_BYTES = 100
_BATCH = 256


@frozen(kw_only=True)
class WorldScale:
    sizes: tuple[int, ...]
    """Bytes of the even worlds, smallest first."""
    compared: int
    """Bytes of the even world with which the odd shapes are compared."""
    shapes: tuple[int, int]
    """Keys of the wide world, and items of the long one."""
    turns: int
    """Turns of each measurement."""
    history: int
    """Commits of the ledger of the largest world."""


FULL = WorldScale(
    sizes=(1_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
    compared=1_000_000,
    shapes=(100_000, 1_000_000),
    turns=2_000,
    history=1_000_000,
)
QUICK = WorldScale(sizes=(1_000, 100_000), compared=100_000, shapes=(1_000, 1_000), turns=16, history=300)


@frozen
class Shape:
    """A world to measure."""

    name: str
    document: dict[str, Any]
    place: Callable[[int], str]
    """Where a commit with this number changes something far below."""


def even(size: int) -> Shape:
    """Rooms of a hundred bytes each, a thousand in a house."""
    rooms = max(1, size // _ROOM_BYTES)
    houses: dict[str, Any] = {}
    for number in range(rooms):
        room = {"guest": None, "name": f"room {number:09}", "note": "n" * 30, "price": number % 9}
        houses.setdefault(f"house {number // 1_000:06}", {})[f"room {number:09}"] = room

    def place(number: int) -> str:
        room = number % rooms
        return f"/houses/house {room // 1_000:06}/room {room:09}/guest"

    return Shape(f"{size:,} bytes", {"counts": _counts(), "houses": houses}, place)


def odd_shapes(keys: int, items: int) -> list[Shape]:
    """Worlds that are wide, deep by keys that fork at every one of their 512 digits, and long."""
    wide = {f"thing {number:09}": number for number in range(keys)}
    deep = {"a" * length + fork: length for length in range(128) for fork in "\u1061\u0161qb"}
    return [
        _odd("wide", wide, list(wide)),
        _odd("deep", deep, list(deep)),
        _odd("long", list(range(items)), range(items)),
    ]


def _odd(name: str, things: dict[str, int] | list[int], keys: Sequence[object]) -> Shape:
    return Shape(name, {"counts": _counts(), "things": things}, lambda number: f"/things/{keys[number % len(keys)]}")


def _counts() -> dict[str, int]:
    return {f"{rule}": 0 for rule in range(5)}


class Visiting:
    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.TURN_FINALIZE, "visit"))


def _rules(shape: Shape, number: int) -> RuleBook:
    """Each rule counts the visit; the first one also changes a place far below."""

    def counting(number: int) -> Rule:
        def rule(world: Any, intents: tuple[Intent, ...]) -> Ruling:
            count = world["counts"][f"{number}"] + 1
            changes = [patch.replace(f"/counts/{number}", count)]
            if number == 0:
                changes.append(patch.replace(shape.place(count * 7_919), count))
            return accept(*changes)

        return rule

    return RuleBook({f"rule{each}": counting(each) for each in range(number)})


async def measure_world(shape: Shape, scale: WorldScale, *, history: int = 0) -> list[Figure]:
    figures: list[Figure] = []
    say(shape.name)
    world = JsonWorld(shape.document)
    with TemporaryDirectory() as folder:
        path = Path(folder, "world.ledger")
        for rules in (1, 5):
            cast = standard_cast(world=world, rules=_rules(shape, rules), workloads={"visit": Visiting()})
            for writers in (1, 8, 64):
                figures += await _race(f"{shape.name}, {rules} rules, {writers} writers", path, cast, writers, scale)
        await _fill(path, shape, history)
        del world, cast
        figures.append(await _open_again(shape.name, path, Aim("below", 3_000) if history else None))
    return [*figures, _memory(shape)]


async def _fill(path: Path, shape: Shape, commits: int) -> None:
    """Write a long history as fast as it goes, without a stage."""
    if not commits:
        return
    say(f"a history of {commits:,} commits")
    rules, previous = _rules(shape, 1), None
    async with SqliteLedger(path) as ledger:
        opening = await ledger.begin_epoch(JsonWorld({}))
        world = opening.world
        for first in range(1, commits + 1, _BATCH):
            records: list[CommitRecord] = []
            for number in range(first, min(first + _BATCH, commits + 1)):
                intent = Intent(IntentType.TURN_FINALIZE, "visit")
                request = JudgeRequest("history", turn_id(opening.epoch, number), None, (intent,))
                judgement = judge(request, world, rules, previous)
                world, previous = judgement.world, judgement.record.commit_digest
                records.append(judgement.record)
            await ledger.append(records, world)


async def _open_again(name: str, path: Path, aim: Aim | None) -> Figure:
    gc.collect()
    began = perf_counter()
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(JsonWorld({}))
    took = (perf_counter() - began) * 1e3
    return Figure(name, "open its ledger again", took, "ms", aim)


def _memory(shape: Shape) -> Figure:
    gc.collect()
    tracemalloc.start()
    world = JsonWorld(shape.document)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Figure(shape.name, "memory", used, "bytes", spread={"as JSON": world.root.size})


async def _race(subject: str, path: Path, cast: Cast, writers: int, scale: WorldScale) -> list[Figure]:
    waits: list[float] = []
    late: list[float] = []
    async with open_stage(cast, ledger=path, wall_clock=perf_counter) as stage:
        before, began, cpu = _bytes_in(path), perf_counter(), process_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_sleep, late)
            async with trio.open_nursery() as players:
                for _ in range(writers):
                    players.start_soon(_play, stage.start(), max(1, scale.turns // writers), waits)
            nursery.cancel_scope.cancel()
        seconds, cpu = perf_counter() - began, process_time() - cpu
        grown = _bytes_in(path) - before
    commits = len(waits)
    return [
        latency_figure(subject, _WAIT, waits, percent=50, also=(95, 99)),
        Figure(subject, "commits", commits / seconds, "commits/s"),
        Figure(subject, _CPU, cpu / commits * 1e6, "µs"),
        Figure(subject, "written a commit", grown / commits, "bytes"),
        Figure(subject, "lateness of a task that sleeps 1 ms, p99", percentile(late or [0.0], 99) * 1e3, "ms"),
    ]


def _bytes_in(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


async def _sleep(late: list[float]) -> None:
    while True:
        began = perf_counter()
        await trio.sleep(0.001)
        late.append(perf_counter() - began - 0.001)


async def _play(session: InteractionSession, turns: int, waits: list[float]) -> None:
    async with session.subscribe() as stream:
        for _ in range(turns):
            turn_id = session.begin_turn("Visit.", _TURN)
            at = {event.event_type: event.wall_ts or 0.0 async for event in stream.until_commit(turn_id)}
            waits.append(at[EventType.COMMIT_FINAL] - at[EventType.TURN_FINAL])


async def _measure(scale: WorldScale) -> Sequence[Figure]:
    figures: list[Figure] = []
    for size in scale.sizes:
        history = scale.history if size == scale.sizes[-1] else 0
        figures += await measure_world(even(size), scale, history=history)
    shapes = odd_shapes(*scale.shapes)
    for shape in shapes:
        figures += await measure_world(shape, scale)
    values = {(figure.subject, figure.name): figure.value for figure in figures}

    def ratio(name: str, of: str, to: int, aim: float) -> Figure:
        alone = ", 1 rules, 1 writers"
        value = values[of + alone, name] / values[f"{to:,} bytes{alone}", name]
        return Figure("all", f"{name}: {of} to {to:,} bytes", value, "x", Aim("at most", aim))

    largest = f"{scale.sizes[-1]:,} bytes"
    return [
        *figures,
        *(ratio(name, largest, scale.sizes[0], 1.5) for name in (_WAIT, _CPU)),
        *(ratio(name, shape.name, scale.compared, 2) for shape in shapes for name in (_WAIT, _CPU)),
    ]


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    parts = {"worlds": in_trio(_measure, QUICK if quick else FULL)}
    return run_suite("world", parts, quick=quick, json_path=json_path, strict=strict)
