"""Streams: one bounded outbox for each subscriber, the replay of a turn, and catch-up from the ledger.

Events are delivered by class, seq and size. Only three kinds are told apart here: token deltas, which are joined, and
terminal events and commit_final, which a cursor records and catch-up rebuilds from the ledger.
"""
