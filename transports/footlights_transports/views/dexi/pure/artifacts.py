"""What a tool's result says of artifacts: those it used, and those it made.

The tool runner tells of them under `payload.ext`. A workload may write there what it likes, so whatever has not the
form of a note is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import frozen

from footlights.tools.artifact_notes import ARTIFACTS, MAX_NOTES

if TYPE_CHECKING:
    from footlights.events import Ext, JsonValue


@frozen
class Note:
    kind: str
    identifier: str
    summary: str = ""


@frozen
class Notes:
    """The artifacts of one tool call."""

    read: tuple[Note, ...] = ()
    generated: tuple[Note, ...] = ()


def artifacts_in(ext: Ext | None) -> Notes:
    """What this extension data tells of artifacts."""
    if ext is None or ext.namespace != ARTIFACTS or not isinstance(ext.data, dict):
        return Notes()
    return Notes(_notes(ext.data.get("read")), _notes(ext.data.get("generated")))


def _notes(value: JsonValue) -> tuple[Note, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(note for each in value[:MAX_NOTES] if (note := _note(each)) is not None)


def _note(value: JsonValue) -> Note | None:
    if not isinstance(value, dict):
        return None
    given = [value.get("kind"), value.get("identifier"), value.get("summary", "")]
    return Note(*cast("list[str]", given)) if all(isinstance(each, str) for each in given) else None
