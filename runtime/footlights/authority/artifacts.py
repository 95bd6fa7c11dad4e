"""What a commit makes true besides the world: a contract, a receipt, a score sheet.

An artifact is named by its own digest, so whoever holds a copy can prove that it is the one that was committed. It is
kept in the record of its commit, and `commit_final` names it in `artifact_refs`.
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
    """A document that a rule lets a turn leave behind. It is a fact, so it may not quote what people or models said."""

    kind: str
    """What it is: 1 to 64 lower-case letters, digits, `_` or `.`, a letter first."""
    data: JsonValue = field(converter=snapshot)
    """Any JSON."""

    def __attrs_post_init__(self) -> None:
        if not _KIND.fullmatch(self.kind):
            raise RegistrationError(f"The kind of an artifact must match {_KIND.pattern}.")

    @property
    def document(self) -> dict[str, JsonValue]:
        """The artifact as anybody may keep it."""
        return {"authoritative": True, "kind": self.kind, "data": self.data}

    @cached_property
    def ref(self) -> str:
        """Its name: the digest of its document. Raises `NotCanonical` if it has none."""
        return f"blake3:{digest(self.document)}"
