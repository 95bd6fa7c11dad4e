"""`footlights ledger`: show, compare, verify and narrate ledger files."""
