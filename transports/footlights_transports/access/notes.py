"""Notebook of a user: what characters remember of the player of a session, for that player alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import Busy, CommitUnknown, InvalidCommand, SessionClosed
from footlights.notebooks.entries import has_agreed, notebook_owner
from footlights.notebooks.store import ContentUnavailable

if TYPE_CHECKING:
    from footlights import InteractionSession, Stage
    from footlights.events import JsonValue

NOTE_ACTS = ("list", "erase", "agree", "withdraw")
"""What a player may ask for: see the notes, erase them all, give a standing yes, take it back."""


async def notes_of(stage: Stage, session: InteractionSession, act: str) -> dict[str, JsonValue]:
    """Do this with the notebook of the session's player, and return what is in it then.

    Raises `InvalidCommand` if there is no notebook, and `Busy` if the words cannot be reached now.
    """
    notebooks, owner = stage.notebooks, notebook_owner(session.speaker)
    if notebooks is None:
        raise InvalidCommand("This game remembers nothing of players.")
    if owner is None:
        raise InvalidCommand("This session has no name, so nothing is remembered of its player.")
    try:
        if act == "erase":
            await notebooks.erase(stage, owner)
        elif act != "list":
            await notebooks.agree(stage, owner, agreed=act == "agree")
        notes = await notebooks.notes(stage.world, owner)
    except ContentUnavailable as error:
        raise Busy("The notes cannot be reached now. Ask again.") from error
    except CommitUnknown:
        raise SessionClosed("The server ends before that is known. Ask again when it is open again.") from None
    return {"agreed": has_agreed(stage.world, owner), "notes": [each.document for each in notes]}
