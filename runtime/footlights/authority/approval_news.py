"""Approval news: the acts that began to wait for an approval by a commit, and those that were decided by it.

They are artifacts of the commit, and news in its `commit_final`:

    for each in approval_news(commit):
        each.state, each.id, each.question
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.authority.artifacts import Artifact, news_in

if TYPE_CHECKING:
    from footlights.events import CommitFinal, JsonValue


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


def approval_news(commit: CommitFinal) -> tuple[ApprovalNews, ...]:
    """What a commit says about acts that need an approval, in order."""
    return tuple(news for each in news_in(commit) if (news := news_of(each)) is not None)


def news_of(artifact: Artifact) -> ApprovalNews | None:
    """What an artifact says about an act; None if it is of another kind."""
    kind = artifact.kind
    match artifact.data:
        case {"id": str(id_), "question": str(question), **others} if not others and kind in _STATES:
            return ApprovalNews(id_, question, _STATES[kind])
        case _:
            return None
