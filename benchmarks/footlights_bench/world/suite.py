"""`footlights bench world`: worlds from 1 KB to 100 MB, and worlds of odd shapes, on this machine's disk, in process.

For each world: turns through a stage (final to commit, commits a second with 1, 8 and 64 writers and 1 and 5 rules, the
lateness of a task that sleeps 1 ms meanwhile), bytes written a commit, memory, and the time to open its ledger again.
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
from footlights.authority import JsonWorld, SqliteLedger, accept, patch
from footlights_actors import standard_cast
from footlights_bench.lib.figures import Aim, Figure, latency_figure, percentile
from footlights_bench.lib.report import in_trio, run_suite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import Cast, InteractionContext, InteractionSession
    from footlights.authority import Ruling

_TURN = TurnParams(workload="visit")
_ROOM_BYTES = 100


@frozen(kw_only=True)
class WorldScale:
    sizes: tuple[int, ...]
    """Bytes of the even worlds, smallest first."""
    shapes: tuple[int, int]
    """Keys of the wide world, and items of the long one."""
    turns: int
    """Turns of each measurement."""


FULL = WorldScale(sizes=(1_000, 100_000, 1_000_000, 10_000_000, 100_000_000), shapes=(100_000, 1_000_000), turns=2_000)
QUICK = WorldScale(sizes=(1_000, 100_000), shapes=(1_000, 1_000), turns=16)


def even(size: int) -> dict[str, Any]:
    """Rooms of a hundred bytes each, a thousand in a house."""
    rooms = max(1, size // _ROOM_BYTES)
    houses: dict[str, Any] = {}
    for number in range(rooms):
        room = {"guest": None, "name": f"room {number:09}", "note": "n" * 30, "price": number % 9}
        houses.setdefault(f"house {number // 1_000:06}", {})[f"room {number:09}"] = room
    return {"counts": {f"{rule}": 0 for rule in range(5)}, "houses": houses}


def odd_shapes(keys: int, items: int) -> dict[str, dict[str, Any]]:
    """Worlds that are wide, deep by keys that fork at every digit, and long."""
    counts = {f"{rule}": 0 for rule in range(5)}
    return {
        "wide": {"counts": counts, "things": {f"thing {number:09}": number for number in range(keys)}},
        "deep": {"counts": counts, "things": {"a" * length: length for length in range(129)}},
        "long": {"counts": counts, "things": list(range(items))},
    }


class Visiting:
    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.TURN_FINALIZE, "visit"))


def _cast(document: dict[str, Any], rules: int) -> Cast:
    """Each rule counts the visit; the first one also changes a place far below."""

    def counting(number: int) -> Any:
        def rule(world: Any, intents: tuple[Intent, ...]) -> Ruling:
            count = world["counts"][f"{number}"] + 1
            changes = [patch.replace(f"/counts/{number}", count)]
            if number == 0:
                changes.append(patch.replace(_place(document, count * 7_919), count))
            return accept(*changes)

        return rule

    named = {f"rule{number}": counting(number) for number in range(rules)}
    return standard_cast(world=document, rules=named, workloads={"visit": Visiting()})


def _place(document: dict[str, Any], number: int) -> str:
    if "houses" in document:
        house = f"house {number // 1_000 % len(document['houses']):06}"
        names = document["houses"][house]
        return f"/houses/{house}/room {int(house[-6:]) * 1_000 + number % len(names):09}/guest"
    things = document["things"]
    if not hasattr(things, "keys"):
        return f"/things/{number % len(things)}"
    return f"/things/{'a' * (number % 129)}" if "a" in things else f"/things/thing {number % len(things):09}"


async def measure_world(name: str, document: dict[str, Any], scale: WorldScale) -> list[Figure]:
    figures: list[Figure] = []
    with TemporaryDirectory() as folder:
        for rules in (1, 5):
            for writers in (1, 8, 64):
                path = Path(folder, f"{rules}-{writers}.ledger")
                figures += await _race(
                    f"{name}, {rules} rules, {writers} writers", path, document, rules, writers, scale
                )
        began = perf_counter()
        async with SqliteLedger(path) as ledger:
            await ledger.begin_epoch(JsonWorld({}, max_depth=200))
        opened = Figure(name, "open its ledger again", (perf_counter() - began) * 1e3, "ms")
    return [*figures, _memory(name, document), opened]


def _memory(name: str, document: dict[str, Any]) -> Figure:
    gc.collect()
    tracemalloc.start()
    world = JsonWorld(document)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Figure(name, "memory", used, "bytes", spread={"as JSON": world.root.size})


async def _race(
    subject: str, path: Path, document: dict[str, Any], rules: int, writers: int, scale: WorldScale
) -> list[Figure]:
    waits: list[float] = []
    late: list[float] = []
    async with open_stage(_cast(document, rules), ledger=path, wall_clock=perf_counter) as stage:
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
        latency_figure(subject, "turn_final to commit_final, p99", waits, also=(50, 95)),
        Figure(subject, "commits", commits / seconds, "commits/s"),
        Figure(subject, "CPU of a commit", cpu / commits * 1e6, "µs"),
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


async def _measure_sizes(scale: WorldScale) -> Sequence[Figure]:
    figures: list[Figure] = []
    for size in scale.sizes:
        figures += await measure_world(f"{size:,} bytes", even(size), scale)
    medians = [figure.spread["p50"] for figure in figures if "1 rules, 1 writers" in figure.subject and figure.spread]
    ratio = medians[-1] / medians[0]
    return [*figures, Figure("all", "final to commit, largest to smallest", ratio, "x", Aim("at most", 1.5))]


async def _measure_shapes(scale: WorldScale) -> Sequence[Figure]:
    return [
        figure
        for name, document in odd_shapes(*scale.shapes).items()
        for figure in await measure_world(name, document, scale)
    ]


def run_world(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL
    parts = {"sizes": in_trio(_measure_sizes, scale), "shapes": in_trio(_measure_shapes, scale)}
    return run_suite("world", parts, quick=quick, json_path=json_path, strict=strict)
