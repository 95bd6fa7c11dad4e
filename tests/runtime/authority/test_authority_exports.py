from __future__ import annotations

from footlights import authority


def test_the_public_names_are_these_and_exist() -> None:
    assert authority.__all__ == sorted(authority.__all__)
    assert all(hasattr(authority, name) for name in authority.__all__)
    assert set(authority.__all__) == {
        "ApprovalNews", "ApprovalState", "Artifact", "CommitRecord", "Intent", "IntentEntry", "IntentType", "JsonWorld",
        "JudgeRequest", "Judgement", "Ledger", "LedgerDamaged", "LedgerFormat", "LedgerInUse", "MemoryLedger",
        "NotCanonical", "Opening", "PatchFailed", "PatchOp", "PendingApproval", "Rule", "RuleBook", "Ruling",
        "SqliteLedger", "ToolRecord", "ToolState", "TurnRequest", "User", "Verdict", "Visibility", "World",
        "WorldReadOnly", "accept", "anybody", "apply_patch", "approval_news", "canonical", "check_intent", "decisions",
        "digest", "every_turn", "judge", "own_approvals", "patch", "pending_approvals", "recompute_digest", "refuse",
        "same_owner", "sealed", "with_approvals",
    }  # fmt: skip
