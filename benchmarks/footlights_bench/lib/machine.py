"""Where a benchmark ran: the facts without which its numbers say nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from attrs import evolve, frozen

_PROCESSORS = Path("/proc/cpuinfo")


@frozen
class Machine:
    system: str
    architecture: str
    processor: str | None
    """Its name, where the system tells."""
    cpus: int | None
    load_average: float | None
    """Over the minute before the run, where the system tells. More than a little, and the numbers are worse."""
    load_average_after: float | None
    """Over the last minute of the run: its own work, and what else there was. None until it is over."""
    python: str
    trio: str
    footlights: str

    def afterwards(self) -> Machine:
        """The same, when the run is over."""
        return evolve(self, load_average_after=_load_average())


def this_machine() -> Machine:
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        processor=name_of_processor(),
        cpus=os.cpu_count(),
        load_average=_load_average(),
        load_average_after=None,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        trio=version("trio"),
        footlights=version("footlights"),
    )


def _load_average() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def name_of_processor(facts: Path = _PROCESSORS) -> str | None:
    """Linux tells it in a file; elsewhere the platform may know."""
    if not facts.exists():
        return platform.processor() or None
    lines = facts.read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
