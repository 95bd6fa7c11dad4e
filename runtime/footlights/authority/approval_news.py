"""Approval news: the acts that began to wait for an approval by a commit, and those that were decided by it.

They are artifacts of the commit, and its `commit_final` repeats them in `ext`. So every view of a turn tells the same
about them from the events alone, live and after a restart:

    for each in approval_news(commit):
        each.state, each.id, each.question
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.authority.artifacts import Artifact
from footlights.events import Ext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import CommitFinal, JsonValue

NAMESPACE = "ext.footlights.approvals"
"""The namespace of the `ext` of `commit_final`. Its data is a list of objects with the fields of `ApprovalNews`."""


class ApprovalState(StrEnum):
    """What a commit says about an act that needs an approval."""

    PENDING = "pending"
    """It waits for an answer."""
    APPROVED = "approved"
    """The answer was yes, and the act is done."""
    DENIED = "denied"
    """The answer was no, and the act is dropped."""


@frozen
class ApprovalNews:
    """What a commit says about one act."""

    id: str
    """The id of the approval, which an answer names."""
    question: str
    """The question of the host's rules."""
    state: ApprovalState

    @property
    def document(self) -> dict[str, JsonValue]:
        """The news as plain JSON."""
        return {"id": self.id, "question": self.question, "state": self.state.value}

    @property
    def artifact(self) -> Artifact:
        """The artifact of the commit that says it."""
        return Artifact(f"{_KIND}{self.state}", {"id": self.id, "question": self.question})


_KIND = "approval."
_STATES = {f"{_KIND}{each}": each for each in ApprovalState}


def news_of(artifact: Artifact) -> ApprovalNews | None:
    """What an artifact says about an act; None if it is of another kind."""
    match artifact.data:
        case {"id": str(id_), "question": str(question), **others} if not others and artifact.kind in _STATES:
            return ApprovalNews(id_, question, _STATES[artifact.kind])
        case _:
            return None


def news_ext(artifacts: Iterable[Artifact]) -> Ext | None:
    """What these artifacts of a commit say, as extension data of its `commit_final`."""
    news = [each for each in map(news_of, artifacts) if each is not None]
    return Ext(NAMESPACE, [each.document for each in news]) if news else None


def approval_news(commit: CommitFinal) -> tuple[ApprovalNews, ...]:
    """What a commit says about acts that need an approval, in order."""
    if commit.ext is None or commit.ext.namespace != NAMESPACE or not isinstance(commit.ext.data, list):
        return ()
    return tuple(news for each in commit.ext.data if (news := _read(each)) is not None)


def _read(document: JsonValue) -> ApprovalNews | None:
    match document:
        case {"id": str(id_), "question": str(question), "state": str(state)} if state in list(ApprovalState):
            return ApprovalNews(id_, question, ApprovalState(state))
        case _:
            return None
