"""Ledgers: the protocol, the one in memory, and the one in a SQLite file. No rule and no judgement lives here."""
