"""What the ledger keeps of a turn: one record that proves itself and names the one before it.

Anybody who holds a record can recompute its digest, and with the records of a session can check that none
is missing or altered between two others. A record holds no time, nothing random, and nothing that people or
models said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from footlights.authority.digest import digest
from footlights.authority.patch import to_json
from footlights.events import CommitFinal

if TYPE_CHECKING:
    from footlights.authority.intents import IntentType
    from footlights.authority.patch import PatchOp
    from footlights.events import CommitOutcome, Issue, JsonValue


@frozen
class IntentEntry:
    """An intent without its payload."""

    type: IntentType
    ref: str
    payload_digest: str | None


@frozen
class Verdict:
    """What one rule said: the codes of its issues, none if it accepted."""

    rule: str
    codes: tuple[str, ...]


@frozen(kw_only=True)
class CommitRecord:
    """All that was decided about one turn, and the digest that proves it."""

    session_id: str
    turn_id: str
    outcome: CommitOutcome
    issues: tuple[Issue, ...]
    """Why it failed closed. Empty if the outcome is ok."""
    intents: tuple[IntentEntry, ...]
    """Empty if the turn was interrupted: what it had staged was discarded."""
    verdicts: tuple[Verdict, ...]
    """What each rule said, in the order of the rule book."""
    changes: tuple[PatchOp, ...]
    """What was made true. Empty unless the outcome is ok."""
    world_before: str
    """The digest of the world that the turn was judged in."""
    world_after: str
    """The digest of the world from then on."""
    previous: str | None
    """The commit_digest of the session's commit before this one."""
    commit_digest: str = ""
    """Over every field above. `sealed` fills it in."""
    commit_id: str = ""
    """A short name for the commit, made from its digest."""


def sealed(record: CommitRecord) -> CommitRecord:
    """The record with the digest and the id that its other fields give."""
    commit_digest = recompute_digest(record)
    return evolve(record, commit_digest=commit_digest, commit_id=f"c-{commit_digest[:16]}")


def recompute_digest(record: CommitRecord) -> str:
    """What `commit_digest` must be. It does not look at what it claims to be. May raise `NotCanonical`."""
    return digest(digested_json(record))


def digested_json(record: CommitRecord) -> dict[str, JsonValue]:
    """The part of a record that its digest is over, as JSON."""
    return {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "outcome": record.outcome.value,
        "issues": [issue_json(issue) for issue in record.issues],
        "intents": [
            {"type": entry.type.value, "ref": entry.ref, "payload_digest": entry.payload_digest}
            for entry in record.intents
        ],
        "verdicts": [{"rule": verdict.rule, "codes": list(verdict.codes)} for verdict in record.verdicts],
        "changes": [to_json(op) for op in record.changes],
        "world_before": record.world_before,
        "world_after": record.world_after,
        "previous": record.previous,
    }


def issue_json(issue: Issue) -> dict[str, JsonValue]:
    return {"code": issue.code, "message": issue.message, "ref": issue.ref}


def commit_final(record: CommitRecord) -> CommitFinal:
    """What subscribers are told of a record."""
    return CommitFinal(
        commit_digest=record.commit_digest,
        commit_outcome=record.outcome,
        issues=record.issues,
        commit_id=record.commit_id,
    )
