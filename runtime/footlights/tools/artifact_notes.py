"""What a tool tells of artifacts: what it consulted and what it made, by name. A note is not the artifact.

Notes stand on the tool's `tool_call_result`, as `payload.ext`, for whoever shows what was done. They change nothing:
what is kept is for the rules to say.
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
"""How many notes one call of a tool may have, both kinds together."""
MAX_IDENTIFIER_CHARS = 256
MAX_SUMMARY_CHARS = 500
"""What is longer is cut before the word that does not fit, so that no half of a secret is left."""

_KIND = re.compile(r"[a-z][a-z0-9_.]{0,63}")


@frozen
class ArtifactNote:
    """The name of something that a tool consulted or made. It is shown to people."""

    kind: str
    """What it is: 1 to 64 lower-case letters, digits, `_` or `.`, a letter first."""
    identifier: str
    """Which one it is, 1 to 256 printable characters: a path, an id, or the `ref` of an `Artifact`."""
    summary: str = ""
    """One sentence about what was made. What was only consulted needs none."""


def artifacts_ext(reads: Sequence[object], generates: Sequence[object]) -> Ext | None:
    """The notes as they stand in the stream; None if there are none. Raises `Unfit` for what cannot stand there."""
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
    """What of this stands in the stream."""
    if len(said) > MAX_SUMMARY_CHARS:
        said = said[: MAX_SUMMARY_CHARS - 1].rstrip(_WITHIN_WORDS) + "\N{HORIZONTAL ELLIPSIS}"
    return said.encode(errors="replace").decode()


_WITHIN_WORDS = string.ascii_letters + string.digits + string.punctuation
