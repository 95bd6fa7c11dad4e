"""`footlights bench`: the benchmark suites, one command each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from footlights_transports.cli.exit_codes import exit_on_refusal

app = typer.Typer(help="Measure the runtime on this machine, or a server.", no_args_is_help=True)

TOKEN_VARIABLE = "FOOTLIGHTS_TOKEN"
OTHER_TOKEN_VARIABLE = "FOOTLIGHTS_OTHER_TOKEN"


def _can_be_written(file: Path | None) -> Path | None:
    """Fail before the measurement, not after it."""
    if file is not None and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
        raise typer.BadParameter(f"{file} cannot be written.")
    return file


JsonPath: TypeAlias = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Also write the figures to this file.", callback=_can_be_written),
]
Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Fewer rounds: a smoke test, not a measurement.")]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a target is missed.")]


@app.command("core")
def bench_core(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """The kernel in process: plain calls, events a second, memory."""
    from footlights_bench.core.suite import run_core

    raise typer.Exit(run_core(quick=quick, json_path=json_path, strict=strict))


@app.command("authority")
def bench_authority(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """Commits on this disk: rate, latency, and the behaviour of a long ledger."""
    from footlights_bench.authority.suite import run_authority

    raise typer.Exit(run_authority(quick=quick, json_path=json_path, strict=strict))


@app.command("world")
def bench_world(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """Worlds from 1 KB to 100 MB and of odd shapes: commits, latency, bytes, memory, opening again."""
    from footlights_bench.world.suite import run_world

    raise typer.Exit(run_world(quick=quick, json_path=json_path, strict=strict))


@app.command("models")
def bench_models(
    weights: Annotated[str, typer.Option("--model", metavar="NAME|FILE", help="The weights to measure.")] = "smollm2",
    json_path: JsonPath = None,
    quick: Quick = False,
    strict: Strict = False,
) -> None:
    """A local model: first token and cancel compared with its engine alone, and its effect on the event loop."""
    from footlights_bench.models.suite import run_models

    raise typer.Exit(run_models(quick=quick, json_path=json_path, weights=weights, strict=strict))


@app.command("embed")
def bench_embed(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """A game loop with a stage on a thread: the effect of streaming turns on frames, and the latency of calls."""
    from footlights_bench.embedding.suite import run_embedding

    raise typer.Exit(run_embedding(quick=quick, json_path=json_path, strict=strict))


@app.command("growth")
def bench_growth(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """Many sessions and very many turns: cost of a turn, memory, duration of garbage collections."""
    from footlights_bench.growth.suite import run_growth

    raise typer.Exit(run_growth(quick=quick, json_path=json_path, strict=strict))


@app.command("wire")
def bench_wire(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """The WebSocket server over loopback: events a second compared with a bare loop, accept and cancel."""
    from footlights_bench.wire.suite import run_wire

    raise typer.Exit(run_wire(quick=quick, json_path=json_path, strict=strict))


@app.command("counts")
def bench_counts(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """The cost of turns and commits in task steps, calls, encodes and sends: counted, not timed."""
    from footlights_bench.counts.suite import run_counts

    raise typer.Exit(run_counts(quick=quick, json_path=json_path, strict=strict))


@app.command("start")
def bench_start(json_path: JsonPath = None, quick: Quick = False, strict: Strict = False) -> None:
    """The time from the start of a process to an import, a first turn, a server that answers."""
    from footlights_bench.start.suite import run_start

    raise typer.Exit(run_start(quick=quick, json_path=json_path, strict=strict))


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
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A file that `--json` of another command wrote.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same, of a later run.")],
) -> None:
    """The changes between two runs: 95 % confidence intervals for a scenario, otherwise ratios."""
    from footlights_bench.compare import compared

    with exit_on_refusal():
        typer.echo(compared(before, after))
