"""Limits of notebooks."""

from __future__ import annotations

from attrs import fields, frozen

from footlights.errors import RegistrationError


@frozen(kw_only=True)
class NotebookLimits:
    """Settings of notebooks. Raises `RegistrationError` for one that is less than 1."""

    max_notes: int = 500
    """Notes in one notebook."""
    max_note_chars: int = 300
    """Characters of one note."""
    recall_chars: int = 1_200
    """Characters of all notes in one prompt."""
    half_life: int = 50
    """Turns in which something was noted, after which a note is half as recent."""

    def __attrs_post_init__(self) -> None:
        for each in fields(type(self)):
            if not getattr(self, each.name) >= 1:
                raise RegistrationError(f"{each.name} must be 1 or more.")
