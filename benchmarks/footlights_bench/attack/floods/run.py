"""Run of one flood beside a bystander: a quiet phase, then the attack, while the server's memory is watched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import frozen

from footlights_bench.attack.floods.bounds import FloodReport
from footlights_bench.attack.floods.bystander import LAST_ANSWERS
from footlights_bench.attack.floods.processes import open_child
from footlights_bench.attack.results import Result
from footlights_bench.lib.machine import resident_bytes

if TYPE_CHECKING:
    from footlights_bench.attack.target import Target

RESIDENT_EVERY = 0.1
_GRACE = 15.0
"""Seconds that a process of the suite may take beyond its planned time."""


@frozen
class Pace:
    """The durations of the phases, in seconds."""

    quiet: float = 3.0
    flood: float = 6.0
    soak: float = 90.0
    """With seven floods at once, buffers grow for about a minute."""


QUICK = Pace(quiet=1.0, flood=2.0, soak=4.0)


class Watch(Protocol):
    """What the suite can see of the server besides its answers."""

    def log_bytes(self) -> int | None: ...

    def ended(self) -> str | None:
        """How the process ended; None while it runs, or if that cannot be seen."""
        ...


async def run_flood(name: str, target: Target, watch: Watch, *, quiet: float, seconds: float) -> Result:
    """Raises `CannotAttack` if the server does not serve the bystander before the attack."""
    attack = {"flood": name, "seconds": seconds, "target": target.to_json()}
    async with open_child("footlights_bench.attack.floods.bystander", target.to_json()) as bystander:
        async with open_child("footlights_bench.attack.floods.attacker", attack) as attacker:
            await bystander.tell("quiet")
            await trio.sleep(quiet)
            logged, quiet_resident, waited = watch.log_bytes(), resident_bytes(target.pid), _waited(target.pid)
            await bystander.tell("flood")
            await attacker.tell("go")
            resident: list[int] = []
            with trio.move_on_after(seconds):
                await _watch_memory(target.pid, resident)
            tally = await attacker.hear(seconds + _GRACE)
            now_logged, now_waited = watch.log_bytes(), _waited(target.pid)
            await bystander.tell("after")
        await bystander.tell("end")
        phases = await bystander.hear(LAST_ANSWERS + _GRACE)
    report = FloodReport(
        quiet=phases["quiet"],
        flooded=phases["flood"],
        seconds=seconds,
        quiet_resident=quiet_resident,
        resident=resident,
        waited=None if waited is None or now_waited is None else (now_waited - waited) / seconds,
        logged=None if logged is None or now_logged is None else now_logged - logged,
        ended=watch.ended(),
    )
    return Result(name, report.bound, f"{report.measured}; {tally}", report.failures())


async def _watch_memory(pid: int | None, resident: list[int]) -> None:
    while (now := resident_bytes(pid)) is not None:
        resident.append(now)
        await trio.sleep(RESIDENT_EVERY)


def _waited(pid: int | None) -> float | None:
    """Seconds that the main thread of a process was runnable without a processor. None as for `resident_bytes`."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return None
