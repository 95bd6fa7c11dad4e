"""`footlights models`: local models, the known weights and their download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from footlights.errors import RegistrationError
from footlights.extras import advice
from footlights_actors.models.local.weights import KNOWN, WeightsError, cached
from footlights_transports.cli.exit_codes import exit_on_refusal
from footlights_transports.cli.models.auto import told_parameters

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_actors.models.local.weights import Weights
    from footlights_actors.models.own_servers import ServerReport

app = typer.Typer(help="Models that run on this machine.")


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """Models that run on this machine. Without a command, list them."""
    if context.invoked_subcommand is None:
        list_models()


@app.command("list")
def list_models() -> None:
    """List the known weights, and what Ollama, LM Studio and llama.cpp offer on their usual ports of this machine.

    Any other GGUF file works by its path.
    """
    for weights in KNOWN.values():
        file = cached(weights)
        where = str(file) if file else f"not downloaded ({weights.wheel_bytes / 1e6:.0f} MB to fetch)"
        typer.echo(f"{weights.name}  {weights.summary}\n  {where}")
    try:
        from footlights_actors.models.own_servers import find_models
    except ModuleNotFoundError as missing:
        typer.echo(f"model servers cannot be asked without {missing.name}: {advice('remote')}")
        return
    import trio

    for report in trio.run(find_models):
        _show(report)


def _show(report: ServerReport) -> None:
    if report.problem is not None:
        typer.echo(f"{report.server.name}  {report.problem}")
        return
    typer.echo(f"{report.server.name}  {report.server.base_url}{'' if report.models else '  no models'}")
    for model in report.models:
        notes = [told_parameters(model), "" if model.chats else "no chat", "elsewhere" if model.remote else ""]
        typer.echo("  ".join(["", f"openai:{model.name}", *filter(None, notes)]))


@app.command("probe")
def probe_server(
    url: Annotated[str, typer.Argument(metavar="URL", help="A server with OpenAI's API, up to and including /v1.")],
    name: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model; by default the first.")
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable with the key; without it none is sent.")
    ] = None,
) -> None:
    """Find out whether a model server streams, calls tools, and really stops after a cancel.

    Sends fixed prompts, some of which it cancels, and measures how late the next first token is. Exits with 1 if the
    server does not stream or does not stop.
    """
    with exit_on_refusal():
        try:
            from footlights.failures import watch_failures
            from footlights_transports.cli.models.probing import probe_here
        except ModuleNotFoundError as missing:
            raise RegistrationError(f"That needs {missing.name}: {advice('remote')}") from None
        with watch_failures(lambda what, error: typer.echo(f"{what}: {error}", err=True)):
            model, report = probe_here(url, name, key_env)
    typer.echo(f"{model} at {url}")
    for what, finding in (("streams", report.streams), ("tools", report.calls_tools), ("stops", report.stops)):
        typer.echo(f"  {what:<8} {finding.sentence}")
    raise typer.Exit(0 if report.streams.ok and report.stops.ok else 1)


@app.command("fetch")
def fetch_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(KNOWN)}.")],
) -> None:
    """Download known weights once, verify them, and keep them in the user's cache.

    pip does the download with its settings. Nothing is installed.
    """
    if name not in KNOWN:
        raise typer.BadParameter(f"unknown weights; known are: {', '.join(KNOWN)}", param_hint="NAME")
    import trio

    try:
        file = trio.run(_fetch_visibly, KNOWN[name])
    except WeightsError as error:
        typer.echo(f"{error} ({error.code})", err=True)
        raise typer.Exit(1) from error
    typer.echo(file)


async def _fetch_visibly(weights: Weights) -> Path:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from footlights_actors.models.local.fetch import fetch

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fetching", total=None)

        def show(doing: str, done: int, total: int) -> None:
            bar.update(task, description=doing, completed=done, total=total)

        return await fetch(weights, show)
