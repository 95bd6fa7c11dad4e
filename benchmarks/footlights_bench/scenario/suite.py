"""`footlights bench scenario`: play a load against a stage or a server, and judge its targets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import trio
from attrs import field, frozen

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import shown_progress
from footlights_bench.scenario.report.html import page
from footlights_bench.scenario.report.text import table
from footlights_bench.scenario.result import result_of
from footlights_bench.scenario.run import observe
from footlights_bench.scenario.systems.in_process import open_in_process
from footlights_bench.scenario.systems.native import open_remote

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from footlights_bench.lib.progress import ShowProgress
    from footlights_bench.scenario.definition import Scenario
    from footlights_bench.scenario.result import Result
    from footlights_bench.scenario.systems.protocol import System


@frozen(kw_only=True)
class Server:
    """The server to measure, instead of a stage in this process."""

    url: str
    token: str | None = field(default=None, repr=False)


def run_scenario(
    scenario: Scenario, server: Server | None, *, quick: bool, json_path: Path | None, html_path: Path | None
) -> int:
    """Play the scenario, write the files, print the table; return the exit code. Raises `FootlightsError`.

    The files are written before anything is printed: a reader of stdout may close the pipe.
    """
    with shown_progress() as show:
        result = trio.run(measure, scenario.quick() if quick else scenario, server, quick, show)
    if json_path is not None:
        json_path.write_text(json.dumps(result.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")
    if html_path is not None:
        html_path.write_text(page(result), encoding="utf-8")
    print(table(result))
    return result.exit_code


async def measure(scenario: Scenario, server: Server | None, quick: bool, show: ShowProgress) -> Result:
    began, machine = datetime.now(UTC), this_machine()
    opened: AbstractAsyncContextManager[System] = (
        open_in_process(scenario.turn) if server is None else open_remote(server.url, server.token)
    )
    async with opened as system:
        observed = await observe(scenario, system, show)
    return result_of(scenario, system.name, observed, machine.afterwards(), began, quick=quick)
