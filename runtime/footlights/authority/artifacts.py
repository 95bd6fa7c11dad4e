"""Artifact: a document that a commit records besides the world, such as a contract, a receipt or a score sheet.

An artifact is named by its digest, so a copy can be proven to be the committed one. The record of its commit contains
it, and `commit_final` names it in `artifact_refs`. Artifacts of some kinds are news: `commit_final` repeats them in its
`ext`, so that every view of a turn shows the same from the events alone, live and after a restart.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.authority.digest import digest
from footlights.authority.values import snapshot
from footlights.errors import RegistrationError
from footlights.events import Ext
from footlights.wire.values import Unfit, json_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import CommitFinal, JsonValue

NEWS = "ext.footlights.news"
"""The namespace of the `ext` of `commit_final`. Its data is a list of artifacts, each with its `kind` and `data`."""
NEWS_KINDS = ("approval.", "mission.")
"""How the kinds of artifacts begin that are news."""

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


def news_ext(artifacts: Iterable[Artifact]) -> Ext | None:
    """The news among the artifacts of a commit, as extension data of its `commit_final`."""
    news: list[JsonValue] = [{"kind": each.kind, "data": each.data} for each in artifacts if _is_news(each)]
    return Ext(NEWS, news) if news else None


def _is_news(artifact: Artifact) -> bool:
    if not artifact.kind.startswith(NEWS_KINDS):
        return False
    try:
        json_value([[artifact.data]])
    except Unfit:  # no event may hold it
        return False
    return True


def news_in(commit: CommitFinal) -> tuple[Artifact, ...]:
    """The artifacts of a commit that are news, in order."""
    if commit.ext is None or commit.ext.namespace != NEWS or not isinstance(commit.ext.data, list):
        return ()
    return tuple(made for each in commit.ext.data if (made := _made(each)) is not None)


def _made(document: JsonValue) -> Artifact | None:
    match document:
        case {"kind": str(kind), "data": data} if _KIND.fullmatch(kind):
            return Artifact(kind, data)
        case _:
            return None
