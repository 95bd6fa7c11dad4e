"""Counts: calls and allocations a turn, the same on every machine."""
