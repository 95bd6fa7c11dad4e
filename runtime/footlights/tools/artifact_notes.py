"""Artifact notes: names of the things that a tool read or generated. A note is not the artifact.

Notes are part of the tool's `tool_call_result`, in `payload.ext`, for clients that display them. They change nothing:
the rules decide which artifacts are committed.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.events import Ext
from footlights.wire.values import Unfit, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.events import JsonValue

ARTIFACTS = "ext.footlights.artifacts"
"""The namespace of the notes on a `tool_call_result`."""
MAX_NOTES = 64
"""Maximum notes of one tool call, both kinds together."""
MAX_IDENTIFIER_CHARS = 256
MAX_SUMMARY_CHARS = 500
"""A longer summary is cut before the word that does not fit, so that no part of a secret is left."""

_KIND = re.compile(r"[a-z][a-z0-9_.]{0,63}")


@frozen
class ArtifactNote:
    """The name of something that a tool read or generated, to be shown to people."""

    kind: str
    """Its kind: 1 to 64 lower-case letters, digits, `_` or `.`, a letter first."""
    identifier: str
    """Its identity, 1 to 256 printable characters: a path, an id, or the `ref` of an `Artifact`."""
    summary: str = ""
    """One sentence about something generated. Ignored for something read."""


def artifacts_ext(reads: Sequence[object], generates: Sequence[object]) -> Ext | None:
    """The notes as extension data of an event; None without notes. Raises `Unfit` for an invalid note."""
    if not reads and not generates:
        return None
    if len(reads) + len(generates) > MAX_NOTES:
        raise Unfit(f"must be no more than {MAX_NOTES}")
    read: list[JsonValue] = [_name(note) for note in map(_checked, reads)]
    generated: list[JsonValue] = [
        {**_name(note), "summary": summary_of(note.summary)} for note in map(_checked, generates)
    ]
    return Ext(ARTIFACTS, {"read": read, "generated": generated})


def _name(note: ArtifactNote) -> dict[str, JsonValue]:
    return {"kind": note.kind, "identifier": note.identifier}


def _checked(note: object) -> ArtifactNote:
    if not isinstance(note, ArtifactNote):
        raise Unfit("must each be an ArtifactNote")
    if not _KIND.fullmatch(text(note.kind)):
        raise Unfit(f"must have a kind that matches {_KIND.pattern}")
    if not 0 < len(text(note.identifier)) <= MAX_IDENTIFIER_CHARS:
        raise Unfit(f"must have an identifier of 1 to {MAX_IDENTIFIER_CHARS} characters")
    if not note.identifier.isprintable():
        raise Unfit("must have an identifier without control characters")
    if not isinstance(note.summary, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a tool may lie
        raise Unfit("must have a summary that is a string")
    return note


def summary_of(said: str) -> str:
    """The summary as it is streamed: shortened, and valid Unicode."""
    if len(said) > MAX_SUMMARY_CHARS:
        said = said[: MAX_SUMMARY_CHARS - 1].rstrip(_WITHIN_WORDS) + "\N{HORIZONTAL ELLIPSIS}"
    return said.encode(errors="replace").decode()


_WITHIN_WORDS = string.ascii_letters + string.digits + string.punctuation
