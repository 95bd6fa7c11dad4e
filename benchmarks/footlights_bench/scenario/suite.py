"""`footlights bench scenario`: play a load against a stage or a server, and say whether the targets were met."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import trio
from attrs import field, frozen

from footlights_bench.lib.machine import this_machine
from footlights_bench.scenario.here import open_here
from footlights_bench.scenario.html import page
from footlights_bench.scenario.progress import shown
from footlights_bench.scenario.result import result_of
from footlights_bench.scenario.run import observe
from footlights_bench.scenario.table import table
from footlights_bench.scenario.there import open_there

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from footlights_bench.scenario.result import Result
    from footlights_bench.scenario.run import Show
    from footlights_bench.scenario.system import System
    from footlights_bench.scenario.terms import Scenario


@frozen(kw_only=True)
class Server:
    """Where to play, if not here."""

    url: str
    token: str | None = field(default=None, repr=False)


def run_scenario(
    scenario: Scenario, server: Server | None, *, quick: bool, json_path: Path | None, html_path: Path | None
) -> int:
    """Play it, write what is asked for, print the table; return the exit code. Raises `FootlightsError`.

    What was measured is on the disk before anything is printed, since whoever reads may go away.
    """
    with shown() as show:
        result = trio.run(measure, scenario.quick() if quick else scenario, server, quick, show)
    if json_path is not None:
        json_path.write_text(json.dumps(result.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")
    if html_path is not None:
        html_path.write_text(page(result), encoding="utf-8")
    print(table(result))
    return result.exit_code


async def measure(scenario: Scenario, server: Server | None, quick: bool, show: Show) -> Result:
    began, machine = datetime.now(UTC), this_machine()
    async with _opened(scenario, server) as system:
        observed = await observe(scenario, system, show)
    return result_of(scenario, system.name, observed, machine.afterwards(), began, quick=quick)


def _opened(scenario: Scenario, server: Server | None) -> AbstractAsyncContextManager[System]:
    return open_here(scenario.turn) if server is None else open_there(server.url, server.token)
