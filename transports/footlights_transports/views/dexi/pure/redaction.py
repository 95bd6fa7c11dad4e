"""A redactor that never fails: what a host's own one raises for is not shown at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.redaction.redactor import Redacted
from footlights.redaction.secret_fields import REDACTED

if TYPE_CHECKING:
    from footlights.redaction.redactor import Redactor


class Blotter:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def redacted(self, text: str) -> Redacted:
        """What may be shown of the text, and whether anything is missing: by now, or when it came here."""
        try:
            left = self._redactor.text(text)
            return Redacted(left.text, left.applied or REDACTED in left.text)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a boundary: a host's patterns and checks may raise anything
            return Redacted(REDACTED, applied=True)

    def __call__(self, text: str) -> str:
        return self.redacted(text).text
