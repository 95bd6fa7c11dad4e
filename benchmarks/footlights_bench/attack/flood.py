"""One flood, run beside a bystander: quiet first, then under attack, while the server's memory is watched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import frozen

from footlights_bench.attack.bounds import Watched
from footlights_bench.attack.bystander import LAST_ANSWERS
from footlights_bench.attack.children import child
from footlights_bench.attack.results import Result

if TYPE_CHECKING:
    from footlights_bench.attack.target import Target

RESIDENT_EVERY = 0.1
_GRACE = 15.0
"""Seconds beyond its own that a process of the suite may take before it is given up."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@frozen
class Pace:
    """How long each flood takes, in seconds."""

    quiet: float = 3.0
    flood: float = 6.0
    soak: float = 90.0
    """Seven floods at once take a minute until every buffer has its size."""


QUICK = Pace(quiet=1.0, flood=2.0, soak=4.0)


class Watch(Protocol):
    """What can be seen of the server besides its answers."""

    def log_bytes(self) -> int | None: ...

    def ended(self) -> str | None:
        """How its process ended; None while it runs, or where that cannot be seen."""
        ...


async def run_flood(name: str, target: Target, watch: Watch, *, quiet: float, seconds: float) -> Result:
    """Raises `CannotAttack` if the bystander is not served even before the attack."""
    attack = {"flood": name, "seconds": seconds, "target": target.to_json()}
    async with child("footlights_bench.attack.bystander", target.to_json()) as bystander:
        async with child("footlights_bench.attack.attacker", attack) as attacker:
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
        report = await bystander.hear(LAST_ANSWERS + _GRACE)
    watched = Watched(
        quiet=report["quiet"],
        flooded=report["flood"],
        seconds=seconds,
        quiet_resident=quiet_resident,
        resident=resident,
        waited=None if waited is None or now_waited is None else (now_waited - waited) / seconds,
        logged=None if logged is None or now_logged is None else now_logged - logged,
        ended=watch.ended(),
    )
    return Result(name, watched.bound, f"{watched.measured}; {tally}", watched.failures())


async def _watch_memory(pid: int | None, resident: list[int]) -> None:
    while (now := resident_bytes(pid)) is not None:
        resident.append(now)
        await trio.sleep(RESIDENT_EVERY)


def resident_bytes(pid: int | None) -> int | None:
    """None if the process is not known or has ended, or the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


def _waited(pid: int | None) -> float | None:
    """Seconds that the main thread of a process was ready and had no processor. None as for `resident_bytes`."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return None
