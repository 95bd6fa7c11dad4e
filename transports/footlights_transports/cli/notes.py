"""`footlights notes`: what a server's characters remember of one player; and the keys that seal it."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from footlights_transports.cli.content import Keys  # noqa: TC001 - typer reads the annotations
from footlights_transports.cli.exit_codes import exit_on_refusal

if TYPE_CHECKING:
    from footlights.events import JsonValue

app = typer.Typer(help="What characters remember of a player.")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="The folder of notes.")]


class Act(StrEnum):
    """What to do with a notebook."""

    LIST = "list"
    ERASE = "erase"
    AGREE = "agree"
    WITHDRAW = "withdraw"


@app.command("of")
def notes_of_player(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server at ws://HOST:PORT or wss://HOST:PORT.")],
    act: Annotated[
        Act,
        typer.Argument(metavar="ACT", help="list, erase, agree (to notes without being asked), or withdraw that."),
    ] = Act.LIST,
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="The environment variable that holds the token.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="NAME", help="The session of the player, without tokens.")
    ] = None,
) -> None:
    """Print the notes that a server has of the player, one JSON object a line, after doing this with them.

    The player is the user of the token. Everything is printed, so this is an export as well.
    """
    import trio

    with exit_on_refusal():
        token = None if token_env is None else os.environ.get(token_env)
        notebook = trio.run(partial(_asked, url, token, session, act.value))
    for each in notebook["notes"]:
        typer.echo(orjson.dumps(each))


async def _asked(url: str, token: str | None, name: str | None, act: str) -> dict[str, list[JsonValue]]:
    from footlights import SessionParams
    from footlights.errors import SessionInUse
    from footlights_transports.client.client import connect

    async with connect(url, token=token) as client:
        try:
            session = await client.start(SessionParams(session_id=name))
        except SessionInUse:
            assert name is not None, "only names are in use"
            return await client.session(name).notes(act)
        try:
            return await session.notes(act)
        finally:
            await session.close()


@app.command("rotate")
def rotate_keys(
    folder: Folder,
    keys: Keys = None,
) -> None:
    """Seal the key of each owner with the first of the keys, so that the older keys can be discarded.

    Notes of other worlds, which are beside the folder in FOLDER.worlds, are included.
    """
    import trio

    from footlights_actors.sealed.keys import keys_from_environment, keys_from_file
    from footlights_actors.sealed.notes import SealedNotes

    with exit_on_refusal():
        found = keys_from_environment(os.environ) if keys is None else keys_from_file(keys)
        count = trio.run(SealedNotes(folder, found).rotate)
    typer.echo(f"{count} sealed with the newest key")
