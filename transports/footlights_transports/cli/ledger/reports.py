"""Reports about a ledger file: the functions behind the commands, which print a report and return the exit code."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import orjson
import typer
from rich.console import Console
from rich.progress import track

from footlights.authority.audit.audit import audit
from footlights.authority.audit.reader import Altered, LedgerUnreadable
from footlights.authority.audit.rebuild import apply, read_record, replay
from footlights.authority.digest import canonical
from footlights.authority.ledger.names import ledger_name, reader_at
from footlights.authority.world import plain_view
from footlights.errors import InvalidCommand, LedgerUnavailable
from footlights_transports.cli.ledger.show import harmless, in_full, one_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from footlights.authority.audit.audit import AuditReport
    from footlights.authority.audit.reader import Entry, ToolRow
    from footlights.authority.audit.rebuild import Replay
    from footlights.authority.ledger.sql.reader import SqlReader
    from footlights.events import JsonValue

_T = TypeVar("_T")

_LARGE = 5_000
"""From this number of commits or tool steps on, a terminal shows the progress."""
_LATEST = 10


def print_audit(ledger: str, head: str | None, tools_head: str | None, *, as_json: bool) -> int:
    """Returns 1 if anything was altered."""
    with _errors_of(ledger), reader_at(ledger) as reader:
        report = audit(_Watched(reader, "auditing"), head, tools_head=tools_head)
    if as_json:
        _print_json(_report_json(report))
    else:
        _print_report(report)
    return 0 if report.ok else 1


def print_replay(ledger: str, at: str | None, *, as_json: bool) -> int:
    """Returns 1 if the rebuilt world is different."""
    with _errors_of(ledger), reader_at(ledger) as reader:
        position = None if at is None else _the_one(reader, at).position
        began = perf_counter()
        replayed = replay(_Watched(reader, "replaying"), at=position)
        seconds = perf_counter() - began
    differences = _differences(replayed)
    rate = replayed.commits / seconds
    if as_json:
        _print_json(
            {
                "identical": replayed.identical,
                "commits": replayed.commits,
                "seconds": round(seconds, 3),
                "commits_per_second": round(rate),
                "world_digest": replayed.world.digest(),
                "expected_digest": replayed.expected,
                "differences": differences,
                "world": replayed.world.view(),
            }
        )
    else:
        for line in differences:
            typer.echo(harmless(line))
        typer.echo(f"{replayed.commits:,} commits in {seconds:.2f} s, {rate:,.0f} a second")
        typer.echo(f"{'identical' if replayed.identical else 'different'}: {replayed.world.digest()}")
    return 0 if replayed.identical else 1


def print_commits(ledger: str, name: str | None) -> None:
    with _errors_of(ledger), reader_at(ledger) as reader:
        found = reader.latest(_LATEST) if name is None else _all_named(reader, name)
        if not found:
            typer.echo("no commits")
        elif name is None or len(found) > 1:
            for entry in found:
                typer.echo(one_line(entry, read_record(entry)))
        else:
            for line in in_full(found[0], read_record(found[0]), _worlds_around(reader, found[0])):
                typer.echo(line)


def print_artifact(ledger: str, ref: str) -> None:
    with _errors_of(ledger), reader_at(ledger) as reader:
        for entry in reader.mentioning(ref):
            for artifact in read_record(entry).artifacts:
                if artifact.ref == ref:
                    text = canonical(artifact.document).decode()
                    typer.echo(harmless(text) if sys.stdout.isatty() else text, nl=sys.stdout.isatty())
                    return
        raise LedgerUnreadable(f"It has no artifact {ref[:128]!r}.")


# -- reading


@contextmanager
def _errors_of(ledger: str) -> Generator[None]:
    """An error of the ledger in the block ends the command."""
    try:
        yield
    except LedgerUnreadable as error:
        typer.echo(harmless(f"{ledger_name(ledger)}: {error}"), err=True)
        raise typer.Exit(2) from None
    except (InvalidCommand, LedgerUnavailable) as error:
        typer.echo(harmless(str(error)), err=True)
        raise typer.Exit(2) from None
    except Altered as flaw:
        typer.echo(harmless(str(flaw)), err=True)
        raise typer.Exit(1) from None


class _Watched:
    """A `LedgerReader` that shows the progress of another on a terminal if it takes long."""

    def __init__(self, reader: SqlReader, doing: str) -> None:
        self._reader = reader
        self._doing = doing
        self.check_schema = reader.check_schema
        self.genesis = reader.genesis
        self.epochs = reader.epochs
        self.worlds = reader.worlds
        self.nodes = reader.nodes
        self.requests = reader.requests
        self.ends = reader.ends

    def entries(self, after: int = 0) -> Iterator[Entry]:
        return self._tracked(self._reader.entries(after), self._doing, self._reader.count() - after)

    def tools(self) -> Iterator[ToolRow]:
        return self._tracked(self._reader.tools(), f"{self._doing} tools", self._reader.count_tool_steps())

    def check_file(self) -> None:
        with ExitStack() as shown:
            if _is_shown(self._reader.count() + self._reader.count_tool_steps()):
                shown.enter_context(Console(stderr=True).status(f"{self._doing} the file"))
            self._reader.check_file()

    def _tracked(self, rows: Iterator[_T], doing: str, number: int) -> Iterator[_T]:
        console = Console(stderr=True)
        return iter(track(rows, doing, number, console=console, transient=True, disable=not _is_shown(number)))


def _is_shown(number: int) -> bool:
    return number >= _LARGE and sys.stderr.isatty()


def _all_named(reader: SqlReader, name: str) -> list[Entry]:
    found = reader.named(name)
    if not found:
        raise LedgerUnreadable(f"It has no commit or turn {name[:128]!r}.")
    return found


def _the_one(reader: SqlReader, name: str) -> Entry:
    first, *others = _all_named(reader, name)
    if others:
        raise LedgerUnreadable(f"It has {len(others) + 1} commits named {name[:128]!r}; take one by its position.")
    return first


def _worlds_around(reader: SqlReader, entry: Entry) -> tuple[JsonValue, JsonValue] | None:
    """The worlds before and after the commit; None if they cannot be rebuilt."""
    try:
        before = replay(reader, at=entry.position - 1).world
        after = apply(before, entry, read_record(entry))
    except (Altered, LedgerUnreadable):
        return None  # the commit can be shown even so, and an audit reports more
    return before.view(), after.view()


# -- printing


def _differences(replayed: Replay) -> list[str]:
    if replayed.identical:
        return []
    return [f"The commit names another world: {replayed.expected}"]


def _print_json(value: object) -> None:
    typer.echo(orjson.dumps(value, default=plain_view, option=orjson.OPT_INDENT_2).decode())


def _print_report(report: AuditReport) -> None:
    if report.flaw is not None:
        typer.echo(harmless(str(report.flaw)))
        steps = f" and {report.tool_steps:,} tool steps" if report.tool_steps else ""
        typer.echo(f"{report.commits:,} commits{steps} before it are as they were written.")
        return
    typer.echo("Nothing was altered.")
    typer.echo(f"  commits   {report.commits:,}")
    typer.echo(f"  sessions  {report.sessions:,}")
    typer.echo(f"  epochs    {report.epochs:,}")
    typer.echo(f"  tools     {report.tool_steps:,} steps")
    typer.echo(f"  world     {report.world_digest}{'' if report.world_rebuilt else ' (not rebuilt)'}")
    typer.echo(f"  head      {report.head}")
    typer.echo(f"  of tools  {report.tools_head}")
    if report.head_position is not None:
        typer.echo(f"  the head that was given is at commit {report.head_position:,}")
    if report.tools_head_position is not None:
        typer.echo(f"  the head of the tools that was given is at step {report.tools_head_position:,}")


def _report_json(report: AuditReport) -> dict[str, JsonValue]:
    flaw = report.flaw
    return {
        "ok": report.ok,
        "flaw": None if flaw is None else {"place": harmless(flaw.place), "position": flaw.position, "what": flaw.what},
        "commits": report.commits,
        "sessions": report.sessions,
        "epochs": report.epochs,
        "world_digest": report.world_digest,
        "world_rebuilt": report.world_rebuilt,
        "head": report.head,
        "head_position": report.head_position,
        "tool_steps": report.tool_steps,
        "tools_head": report.tools_head,
        "tools_head_position": report.tools_head_position,
    }
