"""Commands `audit`, `replay`, `ledger` and `world`: their options and help texts."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import orjson
import typer

from footlights_transports.cli.exit_codes import exit_on_refusal

app = typer.Typer()
ledgers = typer.Typer(help="Read a ledger, copy one, or prepare a database for ledgers.")
app.add_typer(ledgers, name="ledger")
worlds = typer.Typer(help="Change the world of a closed ledger.")
app.add_typer(worlds, name="world")

LedgerName = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger: a file or a URL. It may be in use.")]


class Conflicts(StrEnum):
    """What counts where the settings and the ledger changed the same place."""

    LEDGER = "ledger"
    SETTINGS = "settings"


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("audit")
def audit_ledger(
    ledger: LedgerName,
    head: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="A head that was stored elsewhere; the ledger must contain it."),
    ] = None,
    tools_head: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="A head of the tools that was stored elsewhere; likewise."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that nothing in a ledger was altered.

    Recomputes every digest, follows every chain, rebuilds the world and checks the file's tables and indexes. Exits
    with 1 and names the first commit or tool step that is not as it was written. Without the heads, a careful
    truncation of the end cannot be detected.
    """
    from footlights_transports.cli.ledger.reports import print_audit

    raise typer.Exit(print_audit(ledger, head, tools_head, as_json=as_json))


@app.command("replay")
def replay_ledger(
    ledger: LedgerName,
    at: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Stop after this commit: its id or its position.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the world from the beginning, and compare it with the one in the ledger.

    Prints "identical"; or prints the differences and exits with 1.
    """
    from footlights_transports.cli.ledger.reports import print_replay

    raise typer.Exit(print_replay(ledger, at, as_json=as_json))


@ledgers.command("show")
def show_ledger(
    ledger: LedgerName,
    name: Annotated[
        str | None, typer.Argument(metavar="[COMMIT|TURN]", help="A commit by its id or position, or a turn by its id.")
    ] = None,
) -> None:
    """Show a commit: its intents, the verdicts of the rules, and the changes of the world.

    Without a name, lists the latest commits, one line each; also if several sessions have a turn of that name. The
    content of the ledger is shown as it is: use `footlights audit` to verify it.
    """
    from footlights_transports.cli.ledger.reports import print_commits

    print_commits(ledger, name)


@ledgers.command("artifact")
def show_artifact(
    ledger: LedgerName,
    ref: Annotated[str, typer.Argument(metavar="REF", help="One of a commit's artifact_refs: blake3:...")],
) -> None:
    """Print an artifact as canonical JSON, whose BLAKE3 digest is the name of the artifact.

    On a terminal, control characters are shown as escapes; a pipe gets the exact bytes.
    """
    from footlights_transports.cli.ledger.reports import print_artifact

    print_artifact(ledger, ref)


@ledgers.command("init")
def init_database(
    url: Annotated[str, typer.Argument(metavar="URL", help="A database: postgresql://USER@HOST/DATABASE")],
) -> None:
    """Make the tables of ledgers in a PostgreSQL database, once.

    It needs the right to create a schema. A world is made when a stage opens it. Other users of the machine can see the
    arguments of a command, so leave the password to PGPASSWORD or ~/.pgpass.
    """
    from footlights.authority.ledger.names import init_database

    with exit_on_refusal():
        made = init_database(url)
    typer.echo("made the tables of ledgers" if made else "the database has the tables of ledgers already")


@ledgers.command("copy")
def copy(
    source: LedgerName,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A file or a URL that has no ledger yet.")],
) -> None:
    """Copy a ledger from a file to a database, or back. Every digest stays.

    The ledger is audited before and after. Stop the stage first: what it commits later is not in the copy.
    """
    from footlights.authority.audit.reader import Altered
    from footlights.authority.ledger.copying import copy_ledger

    try:
        with exit_on_refusal():
            report = copy_ledger(source, target)
    except Altered as flaw:
        typer.echo(str(flaw), err=True)
        raise typer.Exit(1) from None
    typer.echo(f"copied {report.commits:,} commits and {report.tool_steps:,} tool steps; the head is {report.head}")


@worlds.command("patch")
def patch_world_of_ledger(
    ledger: Annotated[str, typer.Option(metavar="LEDGER", help="The ledger, a file or a URL. No stage may have it.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A JSON Patch (RFC 6902): a list of operations.")
    ] = None,
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason, which the ledger keeps.")] = "",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The settings with the edited world; game.toml if any.")
    ] = None,
    conflicts: Annotated[
        Conflicts | None, typer.Option(help="What counts where both changed a place; refused if not set.")
    ] = None,
) -> None:
    """Change the world by a commit of the operator: by a patch, or as the world of the settings was edited.

    Without FILE it is the edit of the settings since the ledger took in their world: it is printed as a patch, and
    committed if there is a reason (--why). What players changed stays. Where they changed what was edited, nothing is
    committed without --conflicts.

    No rule of the game judges the commit, and `footlights ledger show` says so. A patch that does not fit changes
    nothing. The ledger is an option here, and not the first argument as in commands that only read: so that it and FILE
    cannot be mistaken for one another.
    """
    from footlights_transports.cli.ledger.show import harmless
    from footlights_transports.cli.ledger.world_patch import Edit, patch_world

    with exit_on_refusal():
        if file is not None:
            record = patch_world(ledger, file, why)
        else:
            from footlights_transports.cli.game_file import found_game_file
            from footlights_transports.config.config import load_config

            edit = Edit.read(ledger, load_config(config or found_game_file(), os.environ).cast.world)
            if not why:
                typer.echo(orjson.dumps(edit.changes(), option=orjson.OPT_INDENT_2).decode())
                if (clash := edit.conflicts()) is not None:
                    typer.echo(harmless(clash), err=True)
                return
            record = edit.commit(why, conflicts)
    typer.echo(f"committed {record.commit_id}")
