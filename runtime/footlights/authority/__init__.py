"""Authority plane: intents, rules, judgement, the world, and the ledger of commits.

A turn stages intents. When it ends, the judge applies the rules to them once, against the world, and the decision
becomes one record in a ledger. Everything here except the ledger is pure: no clock, no randomness, no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority import patch
from footlights.authority.approval_news import ApprovalNews, ApprovalState, approval_news
from footlights.authority.approvals import anybody, decisions, same_owner, with_approvals
from footlights.authority.artifacts import Artifact
from footlights.authority.digest import NotCanonical, canonical, digest
from footlights.authority.intents import Intent, IntentType, check_intent
from footlights.authority.judge import Judgement, JudgeRequest, judge
from footlights.authority.patch import PatchFailed, PatchOp
from footlights.authority.pending import PendingApproval, pending_approvals
from footlights.authority.record import CommitRecord, IntentEntry, Verdict, recompute_digest, sealed
from footlights.authority.rules import Rule, RuleBook, Ruling, accept, every_turn, refuse
from footlights.authority.visibility import User, Visibility, own_approvals
from footlights.authority.world import JsonWorld, World, WorldReadOnly, apply_patch
from footlights.errors import LedgerInUse
from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights.authority.ledger.memory import MemoryLedger
    from footlights.authority.ledger.protocol import Ledger, Opening, ToolRecord, ToolState, TurnRequest
    from footlights.authority.ledger.sql.errors import LedgerDamaged, LedgerFormat
    from footlights.authority.ledger.sqlite.ledger import SqliteLedger

__all__ = [
    "ApprovalNews",
    "ApprovalState",
    "Artifact",
    "CommitRecord",
    "Intent",
    "IntentEntry",
    "IntentType",
    "JsonWorld",
    "JudgeRequest",
    "Judgement",
    "Ledger",
    "LedgerDamaged",
    "LedgerFormat",
    "LedgerInUse",
    "MemoryLedger",
    "NotCanonical",
    "Opening",
    "PatchFailed",
    "PatchOp",
    "PendingApproval",
    "Rule",
    "RuleBook",
    "Ruling",
    "SqliteLedger",
    "ToolRecord",
    "ToolState",
    "TurnRequest",
    "User",
    "Verdict",
    "Visibility",
    "World",
    "WorldReadOnly",
    "accept",
    "anybody",
    "apply_patch",
    "approval_news",
    "canonical",
    "check_intent",
    "decisions",
    "digest",
    "every_turn",
    "judge",
    "own_approvals",
    "patch",
    "pending_approvals",
    "recompute_digest",
    "refuse",
    "same_owner",
    "sealed",
    "with_approvals",
]

_HOMES = {
    "footlights.authority.ledger.memory": "MemoryLedger",
    "footlights.authority.ledger.protocol": "Ledger Opening ToolRecord ToolState TurnRequest",
    "footlights.authority.ledger.sqlite.ledger": "SqliteLedger",
    "footlights.authority.ledger.sql.errors": "LedgerDamaged LedgerFormat",
}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
