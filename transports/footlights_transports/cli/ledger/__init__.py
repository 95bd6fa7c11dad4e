"""Commands that examine a ledger file: `audit`, `replay` and `ledger`. None of them writes to it."""
