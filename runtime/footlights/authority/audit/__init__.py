"""The audit: a ledger read again, its chain recomputed and its commits judged again. It never writes to a ledger."""
