"""Artifact: a document that a commit records besides the world, such as a contract, a receipt or a score sheet.

An artifact is named by its digest, so a copy can be proven to be the committed one. The record of its commit contains
it, and `commit_final` names it in `artifact_refs`.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.authority.digest import digest
from footlights.authority.values import snapshot
from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from footlights.events import JsonValue

_KIND = re.compile(r"[a-z][a-z0-9_.]{0,63}")


@frozen
class Artifact:
    """A document that a rule commits with a turn. It must not quote people or models."""

    kind: str
    """Its kind: 1 to 64 lower-case letters, digits, `_` or `.`, a letter first."""
    data: JsonValue = field(converter=snapshot)
    """Any JSON."""

    def __attrs_post_init__(self) -> None:
        if not _KIND.fullmatch(self.kind):
            raise RegistrationError(f"The kind of an artifact must match {_KIND.pattern}.")

    @property
    def document(self) -> dict[str, JsonValue]:
        """The artifact as JSON."""
        return {"authoritative": True, "kind": self.kind, "data": self.data}

    @cached_property
    def ref(self) -> str:
        """Its name: the digest of its document. Raises `NotCanonical`."""
        return f"blake3:{digest(self.document)}"
