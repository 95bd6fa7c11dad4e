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
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test of a second or two. Targets are not judged.")
    ] = False,
) -> None:
    """Latency under a load that you describe, compared with targets that you set.

    Exits with 1 if a target is missed, and with 2 if the scenario cannot be read or played. The token of the server
    comes from the environment variable FOOTLIGHTS_TOKEN.
    """
    from footlights_bench.scenario.definition import find_scenario, read_scenario
    from footlights_bench.scenario.suite import Server, run_scenario

    server = None if url is None else Server(url=url, token=os.environ.get(TOKEN_VARIABLE))
    with exit_on_refusal():
        read = read_scenario(find_scenario(scenario))
        code = run_scenario(read, server, quick=quick, json_path=json_path, html_path=html_path)
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
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A file that `scenario --json` wrote.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same, of a later run.")],
) -> None:
    """The changes between two runs of a scenario, with 95 % confidence intervals."""
    from footlights_bench.scenario.compare import comparison, read_result

    with exit_on_refusal():
        typer.echo(comparison(read_result(before), read_result(after)))
