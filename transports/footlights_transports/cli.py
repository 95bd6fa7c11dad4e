"""The commands: what each of them takes and how it ends. What they do is written elsewhere.

Exit codes: 0 it went well, 1 what was examined is at fault, 2 the command could not be understood or begun.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import typer

from footlights import laws
from footlights_transports import cli_ledger
from footlights_transports.play import play_here

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import TextIOWrapper

app = typer.Typer(
    help="Streamed turns in front, audited commits behind.",
    add_completion=False,
    rich_markup_mode=None,
    # A pretty traceback shows local variables, and those may hold what somebody said.
    pretty_exceptions_enable=False,
)
benchmarks = typer.Typer(help="Measure the runtime on this machine.")
app.add_typer(cli_ledger.app)
app.add_typer(benchmarks, name="bench")


@app.callback(invoke_without_command=True)
def footlights(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if show_version:
        typer.echo(f"footlights {version('footlights')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def play() -> None:
    """Talk to the innkeeper of a small tavern.

    Ctrl-C interrupts the innkeeper in mid-sentence; Ctrl-D, or Ctrl-C at the prompt, leaves.

    When input or output is not a terminal, each line of the input is a turn, the output is plain text, and the
    innkeeper answers without delays.
    """
    # A terminal that lacks a character gets another one, and not a traceback.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    play_here()


@app.command("laws")
def check_laws(
    file: Annotated[
        typer.FileBinaryRead,
        typer.Argument(metavar="FILE", help="A recording, one event a line; - is standard input."),
    ],
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="The recording was cut short: turns may be unfinished at its end.")
    ] = False,
) -> None:
    """Check a recorded stream against the laws of streams.

    One line for each violation, then a summary. Exits with 1 if there was any.
    """
    tally = _Tally(file)
    violations = laws.check_jsonl(tally, complete=not incomplete)
    for violation in violations:
        typer.echo(violation)
    verdict = f"broken {_count(len(violations), 'time')}" if violations else "lawful"
    typer.echo(f"{_count(tally.events, 'event')}, {_count(len(tally.turns), 'turn')}: {verdict}")
    raise typer.Exit(1 if violations else 0)


@benchmarks.command("core")
def bench_core(
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures to this file.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: a smoke test, not a measurement.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if an aim is not met.")] = False,
) -> None:
    """The kernel in process: plain calls, events a second, memory."""
    from footlights_bench.core import run_core

    raise typer.Exit(run_core(quick=quick, json_path=json_path, strict=strict))


class _Tally:
    """Counts what passes by on its way to the checker."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.events = 0
        self.turns: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.events += 1
            self._note_turn(line)
            yield line

    def _note_turn(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return  # the checker will say so
        match event:
            case {"session_id": str(session_id), "turn_id": str(turn_id)}:
                self.turns.add((session_id, turn_id))
            case _:
                pass


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
