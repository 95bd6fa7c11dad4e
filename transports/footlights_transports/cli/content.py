"""`footlights content`: chats that were stored with consent, for the owner of the keys. A server may run meanwhile."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import orjson
import typer

from footlights_actors.sealed import CONTENT_KEYS_VARIABLE
from footlights_transports.cli.exit_codes import exit_on_refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights_transports.views.kgent.store import ContentStore

_T = TypeVar("_T")

app = typer.Typer(help="Chats that were stored with consent.")

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="The server's content_folder.")
]
Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        help=f"The server's content_keys_file; the keys in {CONTENT_KEYS_VARIABLE} if not given.",
    ),
]
Session = Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session.")]


@app.command("new-key")
def make_key() -> None:
    """Print a new random key: a line for the top of the key file."""
    from footlights_actors.sealed.keys import new_key

    typer.echo(new_key())


@app.command("sessions")
def name_sessions(folder: Folder, keys: Keys = None) -> None:
    """Print the ids of the sessions with stored chats, one a line."""
    for session_id in _done(folder, keys, lambda store: store.sessions()):
        typer.echo(session_id)


@app.command("read")
def read_session(folder: Folder, session: Session, keys: Keys = None) -> None:
    """Print the stored chat of a session, one JSON object a line, the oldest first. Exits with 1 if there is none."""
    kept = _done(folder, keys, lambda store: store.read(session))
    for each in kept:
        typer.echo(orjson.dumps({"turn_id": each.turn_id, "said": each.said, "answered": each.answered}))
    raise typer.Exit(0 if kept else 1)


@app.command("erase")
def erase_sessions(
    folder: Folder,
    session: Annotated[str | None, typer.Argument(metavar="[SESSION]", help="The id of a session.")] = None,
    keys: Keys = None,
    everything: Annotated[bool, typer.Option("--all", help="Erase all sessions.")] = False,
) -> None:
    """Erase the stored chat of a session, or of all. Exits with 1 if there was none.

    A running server continues to store the new turns of sessions that consented.
    """
    if (session is None) != everything:
        raise typer.BadParameter("Name a session, or use --all.")
    erased = _done(folder, keys, lambda store: store.erase_all() if session is None else store.erase(session))
    typer.echo(f"{_sessions(int(erased))} erased")
    raise typer.Exit(0 if erased else 1)


@app.command("rotate")
def rotate_keys(folder: Folder, keys: Keys = None) -> None:
    """Encrypt everything with the first of the keys, so that the older keys can be discarded.

    If something cannot be encrypted again, the rest is, and the command exits with 2: keep the older keys.
    """
    sealed = _done(folder, keys, lambda store: store.rotate())
    typer.echo(f"{_sessions(sealed)} encrypted with the newest key")


def _done(folder: Path, keys: Path | None, work: Callable[[ContentStore], Awaitable[_T]]) -> _T:
    """The result of `work` on the store; an error ends the command."""
    import trio

    from footlights_actors.sealed.keys import keys_from_environment, keys_from_file
    from footlights_transports.views.kgent.store import ContentStore

    with exit_on_refusal():
        found = keys_from_environment(os.environ) if keys is None else keys_from_file(keys)
        return trio.run(partial(work, ContentStore(folder, found)))


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"
