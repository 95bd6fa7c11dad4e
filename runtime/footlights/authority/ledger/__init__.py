"""Ledgers: the protocol, the ledger in memory, and the ledger in a SQLite file. Rules and the judge never live here."""
