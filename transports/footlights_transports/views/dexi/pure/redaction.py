"""Redaction that never fails: text that a host's redactor raises for is hidden completely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.redaction.redactor import Redacted
from footlights.redaction.secret_fields import REDACTED
from footlights.redaction.spans import BLOT

if TYPE_CHECKING:
    from footlights.redaction.redactor import Redactor


class SafeRedactor:
    """A host's redactor, with its failures contained."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def redacted(self, text: str) -> Redacted:
        """The text that may be shown, and whether a part of it is hidden, now or by the tool that wrote it."""
        try:
            left = self._redactor.text(text)
            return Redacted(left.text, left.applied or REDACTED in left.text or BLOT * 4 in left.text)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a boundary: a host's patterns and checks may raise anything
            return Redacted(REDACTED, applied=True)

    def __call__(self, text: str) -> str:
        return self.redacted(text).text
