"""Commands of `footlights`: the application and `laws`. Other modules add the rest."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from footlights_transports.cli import bench as cli_bench
from footlights_transports.cli import content as cli_content
from footlights_transports.cli import dexi as cli_dexi
from footlights_transports.cli import mission as cli_mission
from footlights_transports.cli import notes as cli_notes
from footlights_transports.cli import serve as cli_serve
from footlights_transports.cli.dexi import count, judge_dexi
from footlights_transports.cli.ledger import commands as cli_ledger
from footlights_transports.cli.models import command as cli_models
from footlights_transports.cli.new import command as cli_new
from footlights_transports.cli.play import command as cli_play
from footlights_transports.cli.recordings import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(
    help="Streamed turns in front, audited commits behind.",
    add_completion=False,
    rich_markup_mode=None,
    # A pretty traceback shows local variables, which may contain text of users.
    pretty_exceptions_enable=False,
)
app.add_typer(cli_new.app)
app.add_typer(cli_play.app)
app.add_typer(cli_serve.app)
app.add_typer(cli_dexi.app)
app.add_typer(cli_ledger.app)
app.add_typer(cli_models.app, name="models")
app.add_typer(cli_mission.app, name="mission")
app.add_typer(cli_content.app, name="content")
app.add_typer(cli_notes.app, name="notes")
app.add_typer(cli_bench.app, name="bench")


@app.callback(invoke_without_command=True)
def footlights(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if show_version:
        from importlib.metadata import version

        typer.echo(f"footlights {version('footlights')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


class Dialect(StrEnum):
    """The view whose laws apply to a recording."""

    NATIVE = "native"
    DEXI = "dexi"


@app.command("laws")
def check_laws(
    file: Annotated[
        typer.FileBinaryRead,
        typer.Argument(
            metavar="FILE",
            help="A recording or a trace, one event a line, or Server-Sent Events; - is standard input.",
        ),
    ],
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="The recording was cut short: turns may be open at its end.")
    ] = False,
    dialect: Annotated[
        Dialect, typer.Option(metavar="NAME", help="The recorded view: native events, or the events of dexi runs.")
    ] = Dialect.NATIVE,
    replayed: Annotated[
        bool, typer.Option("--replayed", help="For dexi: parts were read later, so heartbeats are missing.")
    ] = False,
) -> None:
    """Check a recorded stream against the laws of streams.

    Prints one line for each violation, then a summary. Exits with 1 if there was any. A recording has one event as JSON
    a line, or is a stream of Server-Sent Events as curl -N saves it.
    """
    if dialect is Dialect.DEXI:
        recording = Recording(file, "type")
        violations, size = judge_dexi(recording, complete=not incomplete, replayed=replayed)
    else:
        recording = Recording(file, "event_type")
        violations, size = _judge_native(recording, complete=not incomplete)
    for violation in violations:
        typer.echo(violation)
    verdict = f"broken {count(len(violations), 'time')}" if violations else "lawful"
    typer.echo(f"{size}: {verdict}")
    if recording.strange_line is not None:
        typer.echo(f"Stopped at line {recording.strange_line}: it is not a recording. {_RECORDINGS}", err=True)
    raise typer.Exit(1 if violations else 0)


_RECORDINGS = "A recording has one event as JSON a line, or is a stream of Server-Sent Events as curl -N saves it."


def _judge_native(recording: Recording, *, complete: bool) -> tuple[list[str], str]:
    from footlights.laws import check_jsonl

    noted = _Turns(recording)
    violations = check_jsonl(noted, complete=complete)
    return [str(each) for each in violations], f"{count(recording.count, 'event')}, {count(len(noted.turns), 'turn')}"


class _Turns:
    """Notes the turns of events on their way to the checker."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.turns: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._recording:
            self._note_turn(line)
            yield line

    def _note_turn(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return  # the checker reports it
        match event:
            case {"session_id": str(session_id), "turn_id": str(turn_id)}:
                self.turns.add((session_id, turn_id))
            case _:
                pass
