"""Machine: the hardware, the load and the versions that a benchmark ran with, and the memory of a process."""

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
    """The model name; None if the platform does not report one."""
    cpus: int | None
    load_average: float | None
    """Over the minute before the run; None if the platform does not report one. A high load makes the numbers worse."""
    load_average_after: float | None
    """Over the last minute of the run, with the load of the run itself. None until the run is over."""
    python: str
    trio: str
    footlights: str

    def afterwards(self) -> Machine:
        """The same machine with the load average of now."""
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
    """Linux reports it in a file; on other platforms `platform` may know it."""
    if not facts.exists():
        return platform.processor() or None
    lines = facts.read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def resident_bytes(process: int | str | None = "self") -> int | None:
    """Resident memory of a process. None if the process is unknown or has ended, or the platform is not Linux."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
