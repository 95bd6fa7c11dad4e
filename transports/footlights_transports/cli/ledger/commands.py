"""The commands that examine a ledger file: `audit`, `replay` and `ledger`. Each loads what it needs itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()
ledgers = typer.Typer(help="Read a ledger.")
app.add_typer(ledgers, name="ledger")

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="A ledger file. It may be in use.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("audit")
def audit_ledger(
    ledger: LedgerPath,
    head: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="A head that was kept elsewhere; it must be found in the ledger."),
    ] = None,
    tools_head: Annotated[
        str | None,
        typer.Option(metavar="DIGEST", help="A head of the tools that was kept elsewhere; it must be found likewise."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that nothing in a ledger was altered.

    Recomputes every digest, follows every chain, makes the world again and examines the file's tables and indexes.
    Exits with 1 and names the first commit or step of a tool that is not as it was written. Without the heads, it
    cannot be seen that the end was cut with care.
    """
    from footlights_transports.cli.ledger.tell import tell_audit

    raise typer.Exit(tell_audit(ledger, head, tools_head, as_json=as_json))


@app.command("replay")
def replay_ledger(
    ledger: LedgerPath,
    at: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="Stop after this commit: its id or its position.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the world again from nothing, and compare it with the one in the ledger.

    Prints "identical", or what is different, and exits with 1 then.
    """
    from footlights_transports.cli.ledger.tell import tell_replay

    raise typer.Exit(tell_replay(ledger, at, as_json=as_json))


@ledgers.command("show")
def show_ledger(
    ledger: LedgerPath,
    name: Annotated[
        str | None, typer.Argument(metavar="[COMMIT|TURN]", help="A commit by its id or position, or a turn by its id.")
    ] = None,
) -> None:
    """Show a commit: who decided what and why, and what changed in the world.

    Without a name, the latest commits, one line each; also if several sessions have a turn of that name. What is shown
    is what the ledger says: to know whether it is true, audit it.
    """
    from footlights_transports.cli.ledger.tell import tell_commits

    tell_commits(ledger, name)


@ledgers.command("artifact")
def print_artifact(
    ledger: LedgerPath,
    ref: Annotated[str, typer.Argument(metavar="REF", help="One of a commit's artifact_refs: blake3:...")],
) -> None:
    """Print an artifact as canonical JSON: the BLAKE3 digest of these bytes is its name.

    On a terminal, characters that could play tricks with it are shown as escapes; the exact bytes come through a pipe.
    """
    from footlights_transports.cli.ledger.tell import tell_artifact

    tell_artifact(ledger, ref)
