"""`footlights bench scenario`: play a load against a stage or a server, and judge its targets."""

from __future__ import annotations

import json
import signal
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.errors import FootlightsError
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import shown_progress
from footlights_bench.scenario.definition import SystemKind
from footlights_bench.scenario.report.ci import junit, markdown
from footlights_bench.scenario.report.html import page
from footlights_bench.scenario.result import Result, result_of
from footlights_bench.scenario.run import observe

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.lib.progress import ShowProgress
    from footlights_bench.scenario.definition import Scenario
    from footlights_bench.scenario.run import Observed
    from footlights_bench.scenario.systems.choice import Choice

_OTHER_FILES = 64
"""Files that the harness has open beside the connections."""


class TooFewFiles(FootlightsError):
    """The system allows this process fewer open files than the scenario has connections."""

    code = "too_few_files"


@frozen(kw_only=True)
class Files:
    """The files that a run writes, each only if it is named."""

    json: Path | None = None
    html: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    """Appended to, because a CI collects summaries in one file."""

    def write(self, result: Result, comparison: str) -> None:
        if self.json is not None:
            self.json.write_text(json.dumps(result.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")
        if self.html is not None:
            self.html.write_text(page(result), encoding="utf-8")
        if self.junit is not None:
            self.junit.write_text(junit(result), encoding="utf-8")
        if self.markdown is not None:
            with self.markdown.open("a", encoding="utf-8") as summary:
                summary.write(markdown(result, comparison))


def run_scenario(
    scenario: Scenario, choice: Choice, *, quick: bool = False, laps: int = 1, fail_fast: bool = False
) -> Result:
    """Play the scenario so many times. Raises `FootlightsError` if it cannot begin.

    Ctrl-C ends the run early, with a result; a second one ends it without.
    """
    with shown_progress() as show:
        return trio.run(
            _until_interrupted, scenario.quick() if quick else scenario, choice, quick, show, laps, fail_fast
        )


async def _until_interrupted(
    scenario: Scenario, choice: Choice, quick: bool, show: ShowProgress, laps: int, fail_fast: bool
) -> Result:
    stop, results, refused = trio.Event(), list[Result](), None
    async with trio.open_nursery() as nursery:
        await nursery.start(_stop_at_first_signal, stop)
        try:
            results.append(await measure(scenario, choice, quick, show, laps=laps, fail_fast=fail_fast, stop=stop))
        except FootlightsError as error:
            refused = error  # raised outside of the nursery, which would wrap it
        nursery.cancel_scope.cancel(reason="the run is over")
    if refused is not None:
        raise refused
    return results[0]


async def _stop_at_first_signal(stop: trio.Event, task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            stop.set()
            return


async def measure(
    scenario: Scenario,
    choice: Choice,
    quick: bool,
    show: ShowProgress,
    *,
    laps: int = 1,
    fail_fast: bool = False,
    stop: trio.Event | None = None,
) -> Result:
    """Play so many laps, each on a system of its own. Raises `FootlightsError`."""
    machine = this_machine()
    if choice.kind is not SystemKind.STAGE:
        allow_open_files(scenario.load.sessions + scenario.trouble.stalled_clients + _OTHER_FILES)
    runs: list[tuple[str, Observed]] = []
    name = ""
    while len(runs) < laps and not (runs and runs[-1][1].aborted):
        at = datetime.now(UTC).isoformat(timespec="seconds")
        async with choice.open(scenario) as system:
            name = system.name
            runs.append((at, await observe(scenario, system, show, stop=stop, fail_fast=fail_fast)))
    return result_of(scenario, choice.kind, name, runs, machine.afterwards(), quick=quick)


def allow_open_files(number: int) -> None:
    """Raise the limit of open files of this process if it is lower. Raises `TooFewFiles` if the system forbids it."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        raise TooFewFiles(
            f"The scenario needs {number:,} open files, and this process may have {hard:,}: raise the limit"
            " (`ulimit -n`), or use fewer sessions."
        )
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
