"""`footlights bench`: latency under load, comparisons of runs, and attacks, one command each."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer evaluates annotations
from typing import Annotated

import typer

from footlights_transports.cli.exit_codes import exit_on_refusal

app = typer.Typer(help="Measure or attack a server, or a stage in this process.", no_args_is_help=True)

TOKEN_VARIABLE = "FOOTLIGHTS_TOKEN"
OTHER_TOKEN_VARIABLE = "FOOTLIGHTS_OTHER_TOKEN"


def _can_be_written(file: Path | None) -> Path | None:
    """Fail before the measurement, not after it."""
    if file is not None and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise typer.BadParameter(f"{file} cannot be written.")
    return file


@app.command("scenario")
def bench_scenario(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A TOML file, or one of: tavern, raid, cold-start, cancel-storm, slow-clients, soak.",
        ),
    ],
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Measure the server at ws://HOST:PORT instead of a stage in this process."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:WHERE",
            help="Measure another server: http:URL, openai:URL, agui:URL, sse:URL, or module:name of your own.",
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Play it so many times, for `compare`.")] = 1,
    json_path: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Also write the result to this file, for `compare`.",
            callback=_can_be_written,
        ),
    ] = None,
    html_path: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Also write a page with plots to this file.", callback=_can_be_written
        ),
    ] = None,
    junit_path: Annotated[
        Path | None,
        typer.Option(
            "--junit", metavar="FILE", help="Also write the verdicts as JUnit's XML.", callback=_can_be_written
        ),
    ] = None,
    markdown_path: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            help="Also append the tables to this file, such as the one that a CI names for summaries.",
            callback=_can_be_written,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare with what --json wrote earlier; fail if it became slower."),
    ] = None,
    allow_undecided: Annotated[
        bool, typer.Option("--allow-undecided", help="Pass if a target has too few turns to be decided.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End the run when a target cannot be met any more.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test of a second or two. Targets are not judged.")
    ] = False,
) -> None:
    """Latency under a load that you describe, compared with targets that you set.

    Exits with 1 if a target is missed or undecided, or turns failed; with 2 if the scenario cannot be read or played;
    with 3 if the harness itself was the bottleneck. The token of the server comes from the environment variable
    FOOTLIGHTS_TOKEN.
    """
    from footlights_bench.scenario.compare import compared, read_set, recorded
    from footlights_bench.scenario.files import find_scenario, read_scenario
    from footlights_bench.scenario.report.text import table
    from footlights_bench.scenario.suite import Files, run_scenario
    from footlights_bench.scenario.systems.choice import choose

    files = Files(json=json_path, html=html_path, junit=junit_path, markdown=markdown_path)
    with exit_on_refusal():
        choice = choose(url, target, os.environ.get(TOKEN_VARIABLE))
        read = read_scenario(find_scenario(scenario), choice.kind)
        earlier = None if baseline is None else read_set(baseline)
        result = run_scenario(read, choice, quick=quick, laps=repeat, fail_fast=fail_fast)
        comparison = None if earlier is None else compared(earlier, recorded(result))
        told = "" if comparison is None else comparison.text()
        # The files come first: a reader of stdout may close the pipe.
        files.write(result, told)
        typer.echo("\n\n".join(filter(None, [table(result), told])))
        code = result.exit_code(allow_undecided=allow_undecided)
        if comparison is not None and not quick and code == 0:
            comparison.check_size()
            code = 1 if comparison.regressions else 0
    raise typer.Exit(code)


@app.command("attack")
def bench_attack(
    ws_url: Annotated[
        str | None, typer.Option("--ws-url", metavar="URL", help="Attack the server at ws://127.0.0.1:PORT.")
    ] = None,
    http_url: Annotated[
        str | None,
        typer.Option("--http-url", metavar="URL", help="The HTTP address of the same server, http://127.0.0.1:PORT."),
    ] = None,
    token: Annotated[str | None, typer.Option(metavar="TOKEN", help="A token of the attacking user.")] = None,
    other_token: Annotated[
        str | None, typer.Option("--other-token", metavar="TOKEN", help="A token of the user who must not be affected.")
    ] = None,
    pid: Annotated[
        int | None, typer.Option(metavar="PID", help="The process of the server, to watch its memory.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this attack or family of attacks; may be repeated.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="Print the name of every attack.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter floods: a smoke test, not a measurement.")] = False,
    json_path: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Also write the results to this file.", callback=_can_be_written),
    ] = None,
) -> None:
    """Attacks on a server on this machine: floods, slow clients, raw protocol cases, fairness, privacy.

    Without --ws-url and --http-url it starts its own server. Exits with 1 if an attack succeeds, and with 2 if the
    server cannot be attacked: only loopback addresses can. Tokens can also come from the environment variables
    FOOTLIGHTS_TOKEN and FOOTLIGHTS_OTHER_TOKEN.
    """
    from footlights_bench.attack.suite import ATTACKS, run_attacks
    from footlights_bench.attack.target import aim

    if list_names:
        typer.echo("\n".join(ATTACKS))
        raise typer.Exit
    if ws_url is not None:
        token, other_token = (
            token or os.environ.get(TOKEN_VARIABLE),
            other_token or os.environ.get(OTHER_TOKEN_VARIABLE),
        )
    with exit_on_refusal():
        target = aim(ws_url, http_url, token, other_token, pid)
        code = run_attacks(target, only=only or (), quick=quick, json_path=json_path)
    raise typer.Exit(code)


@app.command("compare")
def bench_compare(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A file that `scenario --json` wrote, or a folder of such files.")
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same, of later runs.")],
    min_effect: Annotated[float, typer.Option(min=0, metavar="PERCENT", help="The smallest change that counts.")] = 5.0,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit with 1 if it became slower, or if turns failed.")
    ] = False,
) -> None:
    """The changes between two sets of runs of a scenario, and which are more than chance.

    A verdict takes at least 4 runs of each, as `scenario --repeat` plays them.
    """
    from footlights_bench.scenario.compare import compared, read_set

    with exit_on_refusal():
        comparison = compared(read_set(before), read_set(after), min_effect / 100)
        typer.echo(comparison.text())
        if fail_on_regression:
            comparison.check_size()
    raise typer.Exit(1 if fail_on_regression and comparison.regressions else 0)
