"""What the commands about a ledger file do: prove it, make its world again, show it. None of them writes to it.

Each prints what it found and gives the exit code.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar, cast

import orjson
import typer
from attrs import frozen
from rich.console import Console
from rich.progress import track

from footlights.authority.audit.audit import audit
from footlights.authority.audit.reader import Altered, LedgerUnreadable
from footlights.authority.audit.rebuild import genesis_world, read_record, rebuild, replay
from footlights.authority.digest import canonical
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.events import JsonValue
from footlights_transports.cli.ledger.diff import difference
from footlights_transports.cli.ledger.show import harmless, in_full, one_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from footlights.authority.audit.audit import AuditReport
    from footlights.authority.audit.reader import EndsRow, Entry, EpochRow, GenesisRow, ToolRow, WorldRow
    from footlights.authority.audit.rebuild import Replay

_T = TypeVar("_T")

_LARGE = 5_000
"""From so many commits or steps of tools on, a person at a terminal is shown how far it is."""
_LATEST = 10


def tell_audit(ledger: Path, head: str | None, tools_head: str | None, *, as_json: bool) -> int:
    """1 if anything was altered."""
    with _reading(ledger) as reader:
        report = audit(_Watched(reader, "auditing"), head, tools_head=tools_head)
    if as_json:
        _print_json(_report_json(report))
    else:
        _print_report(report)
    return 0 if report.ok else 1


def tell_replay(ledger: Path, at: str | None, *, as_json: bool) -> int:
    """1 if another world came out."""
    with _reading(ledger) as reader:
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


def tell_commits(ledger: Path, name: str | None) -> None:
    with _reading(ledger) as reader:
        found = reader.latest(_LATEST) if name is None else _all_named(reader, name)
        if name is None or len(found) > 1:
            for entry in found:
                typer.echo(one_line(entry, read_record(entry)))
        else:
            for line in in_full(found[0], read_record(found[0]), _worlds_around(reader, found[0])):
                typer.echo(line)


def tell_artifact(ledger: Path, ref: str) -> None:
    with _reading(ledger) as reader:
        for entry in reader.mentioning(ref):
            for artifact in read_record(entry).artifacts:
                if artifact.ref == ref:
                    text = canonical(artifact.document).decode()
                    typer.echo(harmless(text) if sys.stdout.isatty() else text, nl=sys.stdout.isatty())
                    return
        raise LedgerUnreadable(f"It has no artifact {ref[:128]!r}.")


# -- reading


@contextmanager
def _reading(path: Path) -> Generator[SqliteReader]:
    """The ledger, for as long as the block takes. What is wrong with it ends the command."""
    try:
        with SqliteReader(path) as reader:
            yield reader
    except LedgerUnreadable as error:
        typer.echo(harmless(f"{path}: {error}"), err=True)
        raise typer.Exit(2) from None
    except Altered as flaw:
        typer.echo(harmless(str(flaw)), err=True)
        raise typer.Exit(1) from None


@frozen
class _Watched:
    """A reader that shows somebody at a terminal how far it is, if it takes long."""

    reader: SqliteReader
    doing: str

    def check_schema(self) -> None:
        self.reader.check_schema()

    def genesis(self) -> GenesisRow:
        return self.reader.genesis()

    def epochs(self) -> Iterator[EpochRow]:
        return self.reader.epochs()

    def entries(self) -> Iterator[Entry]:
        return self._tracked(self.reader.entries(), self.doing, self.reader.count())

    def world(self) -> WorldRow:
        return self.reader.world()

    def tools(self) -> Iterator[ToolRow]:
        return self._tracked(self.reader.tools(), f"{self.doing} tools", self.reader.count_tool_steps())

    def ends(self) -> EndsRow:
        return self.reader.ends()

    def check_file(self) -> None:
        with ExitStack() as shown:
            if _is_shown(self.reader.count() + self.reader.count_tool_steps()):
                shown.enter_context(Console(stderr=True).status(f"{self.doing} the file"))
            self.reader.check_file()

    def _tracked(self, rows: Iterator[_T], doing: str, number: int) -> Iterator[_T]:
        console = Console(stderr=True)
        return iter(track(rows, doing, number, console=console, transient=True, disable=not _is_shown(number)))


def _is_shown(number: int) -> bool:
    return number >= _LARGE and sys.stderr.isatty()


def _all_named(reader: SqliteReader, name: str) -> list[Entry]:
    found = reader.named(name)
    if not found:
        raise LedgerUnreadable(f"It has no commit or turn {name[:128]!r}.")
    return found


def _the_one(reader: SqliteReader, name: str) -> Entry:
    first, *others = _all_named(reader, name)
    if others:
        raise LedgerUnreadable(f"It has {len(others) + 1} commits named {name[:128]!r}; take one by its position.")
    return first


def _worlds_around(reader: SqliteReader, entry: Entry) -> tuple[JsonValue, JsonValue] | None:
    """What was true before the commit and after it; None if the ledger cannot tell."""
    earlier = takewhile(lambda each: each.position < entry.position, reader.entries())
    try:
        genesis = genesis_world(reader.genesis())
        if genesis is None:
            return None
        before = rebuild(genesis, earlier)
        after = rebuild(before, [entry])
    except Altered:
        return None  # the commit can be shown even so, and an audit will say more
    return cast(JsonValue, before.view()), cast(JsonValue, after.view())


# -- printing


def _differences(replayed: Replay) -> list[str]:
    if replayed.identical:
        return []
    if replayed.kept is None:
        return [f"The commit names another world: {replayed.expected}"]
    made_again = cast(JsonValue, replayed.world.view())
    return [str(each) for each in difference(replayed.kept.view(), made_again)]


def _print_json(value: object) -> None:
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _print_report(report: AuditReport) -> None:
    if report.flaw is not None:
        typer.echo(harmless(str(report.flaw)))
        steps = f" and {report.tool_steps:,} steps of tools" if report.tool_steps else ""
        typer.echo(f"{report.commits:,} commits{steps} before it are as they were written.")
        return
    typer.echo("Nothing was altered.")
    typer.echo(f"  commits   {report.commits:,}")
    typer.echo(f"  sessions  {report.sessions:,}")
    typer.echo(f"  epochs    {report.epochs:,}")
    typer.echo(f"  tools     {report.tool_steps:,} steps")
    typer.echo(f"  world     {report.world_digest}{'' if report.world_rebuilt else ' (not made again)'}")
    typer.echo(f"  head      {report.head}")
    typer.echo(f"  of tools  {report.tools_head}")
    if report.head_position is not None:
        typer.echo(f"  the head that was kept is at commit {report.head_position:,}")
    if report.tools_head_position is not None:
        typer.echo(f"  the head of the tools that was kept is at step {report.tools_head_position:,}")


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
