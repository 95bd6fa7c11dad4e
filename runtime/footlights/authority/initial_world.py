"""Initial world of a ledger: the one of the settings, and each edit of it that an operator committed.

A ledger begins with the world of the settings, and goes on without them. So a later edit of the settings is taken in by
a commit of its own, `footlights world patch`, whose artifact holds the edit and the digest of the edited world. The
genesis and these artifacts give the initial world that was taken in last, to which the next edit is compared: what
players changed meanwhile is not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.authority.artifacts import Artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from footlights.authority.record import CommitRecord
    from footlights.events import JsonValue

_KIND = "initial_world"


@frozen
class InitialEdit:
    """An edit of the initial world."""

    changes: Sequence[JsonValue]
    """From the initial world that was taken in before, as a JSON Patch."""
    digest: str
    """The digest of the world after them."""

    @property
    def artifact(self) -> Artifact:
        return Artifact(_KIND, {"changes": [*self.changes], "digest": self.digest})


def taken_in(commits: Iterable[CommitRecord]) -> list[InitialEdit]:
    """The edits in these commits of the operator, in their order."""
    edits: list[InitialEdit] = []
    for artifact in (each for commit in commits for each in commit.artifacts):
        match artifact:
            case Artifact(data={"changes": [*changes], "digest": str(digest)}) if artifact.kind == _KIND:
                edits.append(InitialEdit(changes, digest))
            case _:
                pass
    return edits
