"""Commands on a ledger file: `audit`, `replay` and `ledger` read it, and `world patch` appends one commit."""
