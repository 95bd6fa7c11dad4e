"""Audit of a ledger: recomputes its digests, its chains and its world. It never judges, and never writes."""
