"""`footlights content`: what chats left behind with consent, for whoever has the keys. A server may run meanwhile."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import orjson
import typer

from footlights.errors import FootlightsError
from footlights_transports.views.kgent.pure.settings import CONTENT_KEYS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights_transports.views.kgent.store import ContentStore

_T = TypeVar("_T")

app = typer.Typer(help="What was said in chats and kept with consent.")

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="The server's content_folder.")
]
Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        help=f"The server's content_keys_file; without it, {CONTENT_KEYS_VARIABLE} has the keys.",
    ),
]
Session = Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session.")]


@app.command("new-key")
def make_key() -> None:
    """Print a key that nobody else has: a line for the file of keys, before all others."""
    _check_extra()
    from footlights_transports.views.kgent.store import new_key

    typer.echo(new_key())


@app.command("sessions")
def name_sessions(folder: Folder, keys: Keys = None) -> None:
    """Print the ids of the sessions of which something is kept, one a line."""
    for session_id in _done(folder, keys, lambda store: store.sessions()):
        typer.echo(session_id)


@app.command("read")
def read_session(folder: Folder, session: Session, keys: Keys = None) -> None:
    """Print what is kept of a session, one JSON object a line, the oldest first. Exits with 1 if nothing is."""
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
    """Erase what is kept of a session, or of all. Exits with 1 if nothing was.

    A server that runs goes on keeping what is said from now on in sessions that agreed to it.
    """
    if (session is None) != everything:
        raise typer.BadParameter("Name a session, or say --all.")
    erased = _done(folder, keys, lambda store: store.erase_all() if session is None else store.erase(session))
    typer.echo(f"{_sessions(int(erased))} erased")
    raise typer.Exit(0 if erased else 1)


@app.command("rotate")
def rotate_keys(folder: Folder, keys: Keys = None) -> None:
    """Seal everything with the first of the keys, so that the others may be thrown away.

    If something cannot be sealed anew, all the rest is, and it exits with 2: keep the older keys.
    """
    sealed = _done(folder, keys, lambda store: store.rotate())
    typer.echo(f"{_sessions(sealed)} sealed with the newest key")


def _done(folder: Path, keys: Path | None, work: Callable[[ContentStore], Awaitable[_T]]) -> _T:
    """What came of it; what goes wrong ends the command."""
    _check_extra()
    import trio

    from footlights_transports.views.kgent.store import ContentStore, keys_from_environment, keys_from_file

    try:
        found = keys_from_environment(os.environ) if keys is None else keys_from_file(keys)
        return trio.run(partial(work, ContentStore(folder, found)))
    except FootlightsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _check_extra() -> None:
    if find_spec("cryptography") is None:
        typer.echo("This needs an extra: pip install 'footlights[content]'", err=True)
        raise typer.Exit(2)


def _sessions(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"
