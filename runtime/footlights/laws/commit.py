"""Laws of commit_final: a valid digest, issues exactly for failures, and never `ok` for an interrupted turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from footlights.events import CommitOutcome, EventType

if TYPE_CHECKING:
    from footlights.events import CommitFinal
    from footlights.laws.law_texts import Report

_DIGEST = re.compile(r"[0-9a-f]{64}")
_INTERRUPTED = frozenset({"turn_interrupted", "runtime_restart"})


def judge_commit(report: Report, seq: int, commit: CommitFinal, terminal: EventType | None) -> None:
    """`terminal` is the turn's terminal event, None if this subscriber was not sent it."""
    if _DIGEST.fullmatch(commit.commit_digest) is None:
        report("commit_digest", seq, "has a digest that is not 64 lower-case hexadecimal digits")
    ok = commit.commit_outcome is CommitOutcome.OK
    interrupted = terminal is EventType.TURN_INTERRUPTED
    if ok and interrupted:
        report("commit_interrupted", seq, "commits a turn that was interrupted")
    if ok and commit.issues:
        report("commit_issues", seq, "is ok and has issues")
    if not ok and not commit.issues:
        report("commit_issues", seq, "failed closed and does not say why")
    if not ok and commit.issues and interrupted and _INTERRUPTED.isdisjoint(i.code for i in commit.issues):
        report("commit_interrupted", seq, "does not say that the turn was interrupted")
    if terminal is EventType.TURN_FINAL and any(issue.code == "turn_interrupted" for issue in commit.issues):
        report("commit_interrupted", seq, "says that a turn was interrupted which was not")
