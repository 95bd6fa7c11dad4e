"""`make bench-workers`: many worlds in one process, and the same load with one process and with two workers.

The CPU time is that of the server's processes, as Linux counts it. The clients run in this process, and do not count.
What the router adds is the CPU time of its process during the load, for each token.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_bench.lib.progress import say
from footlights_transports import load_config
from footlights_transports.server.metrics import Metrics
from footlights_transports.worlds.hosted import HostedWorlds
from suites.lib.figures import Aim, Figure
from suites.lib.report import in_trio, run_suite
from suites.workers.server import TOKENS, WORLDS, measured, play

if TYPE_CHECKING:
    from suites.workers.server import Measured

ROUTER = Aim("at most", 5)
SPREAD = Aim("at most", 1.15)


@frozen(kw_only=True)
class WorkersScale:
    worlds: int
    players: int
    """In each world."""
    turns: int
    """Of each player."""
    idle_seconds: float


FULL = WorkersScale(worlds=1_000, players=8, turns=100, idle_seconds=10.0)
QUICK = WorkersScale(worlds=5, players=1, turns=2, idle_seconds=0.2)


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL
    parts = {
        "many worlds": in_trio(_worlds, scale),
        "one process and two workers": in_trio(_workers, scale),
    }
    return run_suite("workers", parts, quick=quick, json_path=json_path, strict=strict)


async def _worlds(scale: WorkersScale) -> list[Figure]:
    """The memory and the idle CPU of a process with many open worlds, each with a ledger of its own."""
    subject = f"{scale.worlds:,} worlds in one process"
    with TemporaryDirectory(prefix="footlights-bench-") as folder:
        options: dict[tuple[str, ...], object] = {
            ("server", "ledger"): str(Path(folder, "main.ledger")),
            ("worlds", "max_on_demand"): scale.worlds,
            ("worlds", "max_open"): scale.worlds,
            ("worlds", "idle_seconds"): 0,
        }
        config = load_config(options=options, cast=standard_cast(ScriptedModel(lambda _: [Say("Well.")])))
        async with trio.open_nursery() as nursery:
            worlds = HostedWorlds(config, Metrics(), nursery)
            await worlds.open_main()
            before, began = _resident(), process_time()
            for number in range(scale.worlds):
                await worlds.find(f"w{number}", may_create=True)
            opened, grown = process_time() - began, _resident() - before
            say("measuring the idle worlds")
            began = process_time()
            await trio.sleep(scale.idle_seconds)
            idle = process_time() - began
            await worlds.close()
            nursery.cancel_scope.cancel()
    return [
        Figure(subject, "memory of a world", grown / scale.worlds, "bytes"),
        Figure(subject, "CPU to open a world", opened / scale.worlds * 1e3, "ms"),
        Figure(subject, "CPU of all, idle, in a second", idle / scale.idle_seconds * 1e3, "ms"),
    ]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def _workers(scale: WorkersScale) -> list[Figure]:
    alone, one_wall, _ = await _load(scale, 1)
    spread, two_wall, router = await _load(scale, 2)
    turns = len(WORLDS) * scale.players * scale.turns
    subject = f"{turns:,} turns of {TOKENS} tokens in {len(WORLDS)} worlds"
    return [
        Figure(subject, "CPU of a turn, one process", alone / turns * 1e3, "ms"),
        Figure(subject, "CPU of a turn, two workers", spread / turns * 1e3, "ms"),
        Figure(subject, "two workers, times the CPU of one process", spread / alone, "x", SPREAD),
        Figure(subject, "CPU of a token, that the router adds", router / (turns * TOKENS) * 1e6, "µs", ROUTER),
        Figure(subject, "one process", turns / one_wall, "turns/s"),
        Figure(subject, "two workers", turns / two_wall, "turns/s"),
    ]


async def _load(scale: WorkersScale, workers: int) -> tuple[float, float, float]:
    """The CPU seconds of all processes, the seconds it took, and the CPU seconds of the first process."""
    say(f"playing with {workers} of its processes")
    with TemporaryDirectory(prefix="footlights-bench-") as folder:
        async with measured(Path(folder), workers) as server:
            await _play(server, 1, 1)  # every world is open, and everything is imported
            before, began = server.cpu_seconds(), perf_counter()
            await _play(server, scale.players, scale.turns)
            wall, after = perf_counter() - began, server.cpu_seconds()
    spent = {pid: seconds - before.get(pid, 0.0) for pid, seconds in after.items()}
    return sum(spent.values()), wall, spent[server.pid]


async def _play(server: Measured, players: int, turns: int) -> None:
    async with trio.open_nursery() as nursery:
        for world in WORLDS:
            for _ in range(players):
                nursery.start_soon(play, server, world, turns)
