"""Scenarios end to end: in process with a virtual clock, and over loopback against a real server."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
import trio
from attrs import evolve
from rich.console import Console
from typer.testing import CliRunner

from footlights import Limits, open_stage
from footlights.errors import SessionClosed
from footlights.testing import cancel_everywhere
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import ignore_progress, progress_bar, shown_progress
from footlights_bench.scenario.definition import LedgerKind, Metric, TurnShape
from footlights_bench.scenario.files import find_scenario, read_scenario, shipped
from footlights_bench.scenario.plan import plan
from footlights_bench.scenario.report.html import page
from footlights_bench.scenario.run import observe
from footlights_bench.scenario.suite import measure
from footlights_bench.scenario.systems import native as scenario_remote
from footlights_bench.scenario.systems.choice import in_process, native
from footlights_bench.scenario.systems.in_process import InProcess, StagePlayer, open_in_process
from footlights_bench.scenario.systems.native import open_native
from footlights_transports import connect
from footlights_transports.access.policy import AccessPolicy
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.cli.bench import TOKEN_VARIABLE
from footlights_transports.cli.commands import app
from footlights_transports.cli.main import main
from footlights_transports.errors import Unauthorized
from suites.lib.report import Report, publish
from tests.kit.command import footlights
from tests.kit.served import FOOTLIGHTS, open_server, write_game
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from trio.testing import MockClock

    from footlights.testing import Trial
    from footlights_transports.server.listening import Listening

pytestmark = pytest.mark.usefixtures("interruptible")

ON_STAGE = """\
[turn]
tokens = 3
pace = 0
tool_calls = 1
ledger = "memory"

"""
TINY = """\
[load]
sessions = 2
turns_per_second = 100
duration = 0.05

[trouble]
cancel_share = 0.2
cancel_after = 0.01
cut_share = 0.5
cut_after = 0.001
stalled_clients = 1
stall_seconds = 0.01

[targets.accepted]
metric = "accept"
percentile = 100
"""
EASY = f"{TINY}at_most_ms = 60000\n"
HARD = f"{TINY}at_most_ms = 0.000001\n"


def scenario(folder: Path, text: str) -> Path:
    file = folder / "tiny.toml"
    file.write_text(text, encoding="utf-8")
    return file


# -- in process


@pytest.mark.parametrize("name", shipped())
async def test_every_included_scenario_has_a_quick_run(name: str, quiet_clock: MockClock) -> None:
    quick = read_scenario(find_scenario(name)).quick()
    result = await measure(quick, in_process(), True, ignore_progress)
    assert result.turns > 10
    assert result.failed == 0
    assert all(each.percentile(100) < 10 for each in result.latencies.values() if each.count)
    assert (result.baseline is not None) is quick.wants_baseline
    ElementTree.fromstring(page(result))


async def test_the_settings_of_a_turn_determine_its_duration(quiet_clock: MockClock) -> None:
    base = read_scenario(find_scenario("tavern")).quick()
    turn = TurnShape(tokens=10, pace=0.5, tool_calls=2, tool_seconds=3.0, load_seconds=7.0)
    load = evolve(base.load, sessions=1, turns_per_second=0.01, duration=150.0, warm_up=0.0, patience=60.0)
    one = evolve(base, load=evolve(load, arrivals="constant"), turn=turn, trouble=evolve(base.trouble, cancel_share=0))
    latencies = (await measure(one, in_process(), False, ignore_progress)).latencies
    assert latencies[Metric.ACCEPT].percentile(100) == 0
    # The second turn finds the model loaded.
    assert latencies[Metric.FIRST_TOKEN].percentile(50) == pytest.approx(6.5, rel=2e-3)
    assert latencies[Metric.FIRST_TOKEN].percentile(100) == pytest.approx(13.5, rel=2e-3)
    assert latencies[Metric.FINAL].percentile(50) == pytest.approx(11.0, rel=2e-3)


async def test_another_model_runs_in_the_tavern(quiet_clock: MockClock) -> None:
    async with open_in_process(TurnShape(model="innkeeper")) as stage, stage.open_player() as player:
        turn_id = await player.begin_turn("A room?")
        seen = [event async for event in _until_settled(player, turn_id)]
    assert seen[0] == "turn_accepted"


async def test_a_detached_client_resubscribes(quiet_clock: MockClock) -> None:
    limits = Limits(stall_detach=1.0)
    async with open_stage(tavern_cast(), limits=limits) as stage, InProcess(stage).open_player() as player:
        turn_id = await player.begin_turn("A room?")
        await trio.sleep(60)
        seen = [event async for event in _until_settled(player, turn_id)]
    assert seen[-1] == "commit_final"


async def test_a_closed_session_raises_in_its_player(quiet_clock: MockClock) -> None:
    async with open_stage(tavern_cast()) as stage, InProcess(stage).open_player() as player:
        await player._session.close()
        with pytest.raises(SessionClosed):
            await player.receive_batch()


async def _until_settled(player: object, turn_id: str) -> AsyncGenerator[str]:
    while True:
        for event in await player.receive_batch():  # type: ignore[attr-defined]  # any player
            yield event.event_type
            if event.event_type == "commit_final":
                assert event.turn_id == turn_id
                return


def test_a_client_may_be_cut_anywhere_and_misses_nothing() -> None:
    async def scenario(trial: Trial) -> None:
        async with open_stage(tavern_cast()) as stage:
            session = stage.start()
            client = StagePlayer(session, await session.subscribe().__aenter__())
            trial.aim(client.cut_nowait)
            turn_id = session.begin_turn("A room?")
            seen = [event async for event in _until_settled(client, turn_id)]
            trial.disarm()
            assert seen.count("turn_accepted") == seen.count("turn_final") == seen.count("commit_final") == 1
            await client.leave()

    assert cancel_everywhere(scenario, orders=1, pairs=5).points > 20


def test_a_run_may_be_cancelled_anywhere() -> None:
    base = read_scenario(find_scenario("soak")).quick()
    turn = TurnShape(tokens=2, pace=0.1, ledger=LedgerKind.MEMORY)
    load = evolve(base.load, sessions=2, turns_per_second=10.0, duration=0.3, warm_up=0.0)
    trouble = evolve(base.trouble, cut_share=0.5, cancel_share=0.5, stalled_clients=1)
    short = evolve(base, load=load, turn=turn, trouble=trouble)

    async def scenario(trial: Trial) -> None:
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            async with open_in_process(turn) as system:
                assert (await observe(short, system)).tally.failed == 0
            trial.disarm()

    assert cancel_everywhere(scenario, orders=1, pairs=0).points > 100


# -- against a server


@asynccontextmanager
async def serving(
    tokens: dict[str, str] | None = None, pace: float = 0.0
) -> AsyncGenerator[tuple[str, trio.CancelScope]]:
    cast = tavern_cast(pace=pace, load_seconds=0, tool_seconds=0)
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_ws, SessionAccess(stage, AccessPolicy(tokens)), host="127.0.0.1", port=0, goodbye=0.01)
        scope = trio.CancelScope()

        async def run(task_status: trio.TaskStatus[Listening]) -> None:
            with scope:
                await serve(task_status=task_status)

        listening: Listening = await nursery.start(run)
        yield f"ws://127.0.0.1:{listening.port}", scope
        scope.cancel()


async def test_a_server_is_measured_from_outside(tmp_path: Path) -> None:
    read = read_scenario(scenario(tmp_path, EASY))
    many = evolve(read, load=evolve(read.load, sessions=5))  # more than share a connection
    async with serving({"harness": "a-token-for-the-harness"}) as (url, _):
        result = await measure(many, native(url, "a-token-for-the-harness"), False, ignore_progress)
    assert result.system == url, (result.outcomes, result.troubles)
    print(result.outcomes, result.troubles)
    assert result.failed == 0
    assert result.exit_code() == 0
    assert result.samples[0].depths is None


async def test_cancels_cuts_and_stalled_clients_are_played_against_a_server(tmp_path: Path) -> None:
    read = read_scenario(scenario(tmp_path, EASY))
    trouble = evolve(read.trouble, cancel_share=0.5, cancel_after=0.1, cut_share=1.0, cut_after=0.02, stalled_clients=3)
    many = evolve(read, load=evolve(read.load, sessions=10, arrivals="constant", duration=0.1), trouble=trouble)
    # Its turns take real time, because sockets know no other; long enough that no cancel comes too late.
    async with serving(pace=0.03) as (url, _):
        result = await measure(many, native(url, None), False, ignore_progress)
    canceled = sum(arrival.cancel_due is not None for arrival in plan(many))
    assert 0 < canceled < 10
    assert result.outcomes == {"canceled": canceled, "final": 10 - canceled}
    assert result.latencies[Metric.CANCEL].count == canceled
    assert result.cuts == 10
    assert result.turned_away == 0


async def test_a_run_ends_with_a_result_if_the_server_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario_remote, "CLOSING", 0.01)
    read = read_scenario(scenario(tmp_path, EASY))
    short = evolve(read, load=evolve(read.load, duration=0.2, patience=0.01))
    async with serving() as (url, stop):

        def pull_the_plug(doing: str, done: float, total: float) -> None:
            if done > 0.1:
                stop.cancel()

        result = await measure(short, native(url, None), False, pull_the_plug)
    assert result.failed > 0
    assert result.exit_code() in (1, 3), "the server shares this process, and may have made it late"


async def test_a_missing_token_is_an_error(tmp_path: Path) -> None:
    async with serving({"harness": "a-token-for-the-harness"}) as (url, _):
        with pytest.raises(Unauthorized):
            await measure(read_scenario(scenario(tmp_path, EASY)), native(url, None), False, ignore_progress)


async def test_a_closed_session_raises_in_its_remote_player() -> None:
    async with serving() as (url, _), open_native(url, None) as remote, remote.open_player() as player:
        async with connect(url) as client:
            await client.session(player.session_id).close()
        with pytest.raises(SessionClosed):
            await player.receive_batch()


# -- the command


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    return footlights(monkeypatch, "bench", *arguments)


@pytest.mark.parametrize(("text", "code"), [(EASY, 0), (HARD, 1)])
def test_the_exit_code_depends_on_the_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    result, html = tmp_path / "result.json", tmp_path / "report.html"
    file = str(scenario(tmp_path, text))
    assert command(monkeypatch, "scenario", file, "--json", str(result), "--html", str(html)) == code
    printed = capsys.readouterr()
    assert printed.out.startswith("tiny: 2 players")
    assert printed.err == "measuring ...\n"
    assert json.loads(result.read_text())["machine"]["python"]
    ElementTree.fromstring(html.read_text())
    assert command(monkeypatch, "compare", str(result), str(result)) == 0
    compared = capsys.readouterr().out
    assert "too few runs" in compared
    assert command(monkeypatch, "compare", str(result), str(result), "--fail-on-regression") == 2
    assert "there are 1 and 1" in capsys.readouterr().err


async def test_the_command_takes_the_token_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "tokens").touch(0o600)
    (tmp_path / "tokens").write_text("harness a-token-for-the-harness\n")
    game = write_game(tmp_path, f'tokens_file = "{tmp_path}/tokens"\n')
    result = tmp_path / "result.json"
    async with open_server(tmp_path, "--config", str(game)) as served:
        url = f"ws://127.0.0.1:{served.ws_port}"
        played = await trio.run_process(
            [*FOOTLIGHTS, "bench", "scenario", str(scenario(tmp_path, EASY)), "--url", url, "--json", str(result)],
            env={**os.environ, TOKEN_VARIABLE: "a-token-for-the-harness"},
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    found = json.loads(result.read_text())
    assert (played.returncode, found["system"], found["failed"]) == (0, url, 0)
    assert b"accepted: accept max" in played.stdout
    assert b"a-token-for-the-harness" not in played.stdout + played.stderr + result.read_bytes()


def test_an_interrupted_run_prints_its_results_and_no_traceback(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    command = [*FOOTLIGHTS, "bench", "scenario", "soak", "--json", str(result)]
    with Popen(command, stdout=PIPE, stderr=PIPE) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == b"warming up ...\n"
            process.send_signal(signal.SIGINT)
            printed, complaints = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, complaints) == (130, b"")
    assert b"The run ended before its plan: it was interrupted." in printed
    assert json.loads(result.read_text())["aborted"] == "it was interrupted"


def _run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["footlights", "bench", *arguments])
    main()


class BrokenPipe(StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_the_result_is_written_even_if_stdout_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, html, figures = tmp_path / "result.json", tmp_path / "report.html", tmp_path / "figures.json"
    monkeypatch.setattr(sys, "stdout", BrokenPipe())
    arguments = ["scenario", str(scenario(tmp_path, EASY)), "--quick", "--json", str(result), "--html", str(html)]
    with pytest.raises(BrokenPipeError):
        _run_main(monkeypatch, *arguments)
    with pytest.raises(BrokenPipeError):
        publish(Report("tea", True, this_machine(), []), figures, strict=False)
    assert json.loads(result.read_text())["quick"] is json.loads(figures.read_text())["quick"] is True
    ElementTree.fromstring(html.read_text())


def test_a_quick_run_misses_no_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "scenario", str(scenario(tmp_path, HARD)), "--quick") == 0
    assert "not judged" in capsys.readouterr().out


def test_the_help_names_every_included_scenario(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "scenario", "--help") == 0
    told = "".join(capsys.readouterr().out.split())  # a name may be broken at its hyphen
    assert [name for name in shipped() if name not in told] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scenario", "nowhere"], "There is no such file, and no scenario of that name."),
        (["scenario", "tavern", "--url", "http://x"], "The address of a server reads ws://"),
        (["compare", "nowhere.json", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_an_error_before_the_run_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert command(monkeypatch, *arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("place", [".", "nowhere/result"])
def test_an_unwritable_file_is_an_error_before_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    place: str,
) -> None:
    assert command(monkeypatch, "scenario", str(scenario(tmp_path, EASY)), option, str(tmp_path / place)) == 2
    printed = capsys.readouterr()
    assert "cannot be written" in " ".join(printed.err.replace("│", " ").split())
    assert "measuring" not in printed.err


def test_bench_without_a_command_prints_its_help() -> None:
    told = CliRunner().invoke(app, ["bench"]).output
    assert all(each in told for each in ("scenario", "compare", "attack"))
    assert "core" not in told, "what measures Footlights itself is not in the wheel"


# -- progress


def test_a_bar_is_drawn_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    with progress_bar(Console(file=screen, force_terminal=True)) as show:
        show("measuring", 5.0, 10.0)
    assert "measuring" in screen.getvalue()


def test_a_terminal_gets_a_bar_and_a_log_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress() as show:
        show("alone", 0.0, 1.0)
        show("alone", 0.5, 1.0)
        show("measuring", 0.0, 1.0)
    assert capsys.readouterr().err == "alone ...\nmeasuring ...\n"
    screen = StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]  # a terminal in all that matters
    monkeypatch.setattr(sys, "stderr", screen)
    with shown_progress() as show:
        show("alone", 0.0, 1.0)
    assert "alone ..." not in screen.getvalue()
