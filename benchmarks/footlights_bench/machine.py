"""Where a benchmark ran: the facts without which its numbers say nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from attrs import frozen


@frozen
class Machine:
    system: str
    architecture: str
    cpus: int | None
    load_average: float | None
    """Over the minute before the run, where the system tells. More than a little, and the numbers are worse."""
    python: str
    trio: str
    footlights: str


def this_machine() -> Machine:
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpus=os.cpu_count(),
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        trio=version("trio"),
        footlights=version("footlights"),
    )
