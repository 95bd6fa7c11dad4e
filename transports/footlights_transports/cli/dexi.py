"""Commands for narrated runs: `footlights run`, `footlights schema`, and `footlights laws --dialect dexi`.

Each command imports what it needs when it is called.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import typer

from footlights.errors import FootlightsError
from footlights.modes import ExecutionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from io import TextIOWrapper

    from footlights_transports.views.dexi.pure.events import DexiEvent

app = typer.Typer()


class Schema(StrEnum):
    """The schemas that can be printed."""

    DEXI = "dexi"


@app.command()
def schema(
    which: Annotated[Schema, typer.Argument(metavar="NAME", help="dexi: the events of narrated runs.")],
) -> None:
    """Print a JSON Schema."""
    from footlights_transports.views.dexi.pure.schema import dexi_schema

    assert which is Schema.DEXI
    typer.echo(orjson.dumps(dexi_schema(), option=orjson.OPT_INDENT_2).decode())


@app.command()
def run(
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The request.")],
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent: analyst or innkeeper.")] = "analyst",
    policy: Annotated[
        ExecutionPolicy, typer.Option(metavar="POLICY", help="Whether the agent may execute it: deny, auto or force.")
    ] = ExecutionPolicy.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the events as JSON, one a line.")] = False,
) -> None:
    """Send a request to an agent of the tavern, and show its steps as they happen.

    Ctrl-C cancels the run. Exits with 1 if the run was not completed. If input or output is not a terminal, the output
    is plain text, and the agent works without delays.
    """
    from footlights_actors.demo.tavern.cast import tavern_cast
    from footlights_transports.cli.run import run_here
    from footlights_transports.cli.screen import is_terminal
    from footlights_transports.views.dexi.pure.events import RunOutcome
    from footlights_transports.views.dexi.runs import RunRequest

    # A character that the terminal's encoding lacks is replaced, and raises no error.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    tavern = tavern_cast() if is_terminal() else tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
    try:
        outcome = run_here(tavern, RunRequest(message=message, policy=policy, agent=agent), _printer(as_json))
    except FootlightsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if outcome is RunOutcome.COMPLETED else 1)


def _printer(as_json: bool) -> Callable[[DexiEvent], None]:
    if as_json:
        from footlights_transports.views.dexi.pure.events import to_json

        return lambda event: typer.echo(orjson.dumps(to_json(event)))
    from footlights_transports.cli.run_view import RunView
    from footlights_transports.cli.screen import standard_screen

    view, screen = RunView(), standard_screen(spaced=True)

    def show(event: DexiEvent) -> None:
        for piece in view.show(event):
            screen.show(piece)

    return show


def judge_dexi(lines: Iterable[bytes], *, complete: bool, replayed: bool = False) -> tuple[list[str], str]:
    """The violations in a recording, and its size in words."""
    from footlights_transports.views.dexi.pure.laws import check_dexi_jsonl

    recorded = list(lines)
    violations = check_dexi_jsonl(recorded, complete=complete, replayed=replayed)
    runs = sum(_is_mode(line) for line in recorded)
    return [str(each) for each in violations], f"{count(len(recorded), 'event')}, {count(runs, 'run')}"


def _is_mode(line: bytes) -> bool:
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False  # the checker reports it
    match event:
        case {"type": "mode"}:
            return True
        case _:
            return False


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
