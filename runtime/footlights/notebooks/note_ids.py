"""Ids of notes, and what `model_selected` says about the notes of a prompt: their ids, and no word of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from footlights.authority.digest import digest_bytes
from footlights.events import Ext

if TYPE_CHECKING:
    from collections.abc import Sequence

REMEMBER = "remember"
"""The name of the tool that proposes a note."""
ABOUT_A_NOTE = "Remember note "
"""Beginning of the question of an approval of a note. The id follows, and no word of the note."""
RECALLED = "ext.footlights.notes"
"""The namespace of the `ext` of `model_selected`: a list of the ids of the notes in the prompt."""

_ID = re.compile(r"n-(t\d{1,18}-\d{6,18})-[0-9a-f]{8}-\d{1,4}")


def note_id_of(session_id: str, turn_id: str, call: str) -> str:
    """The id of the note that this call proposes. Turns are counted by session, so the session is part of it."""
    return f"n-{turn_id}-{digest_bytes(session_id.encode())[:8]}-{call}"


def is_note_id(value: object) -> bool:
    """Whether this has the form of a note's id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def turn_of(note_id: str) -> str:
    """The id of the turn in the id of a note."""
    match = _ID.fullmatch(note_id)
    assert match is not None, "only ids of notes get here"
    return match[1]


def recalled_ext(note_ids: Sequence[str]) -> Ext | None:
    """What `model_selected` says about these notes; None without any."""
    return Ext(RECALLED, list(note_ids)) if note_ids else None
