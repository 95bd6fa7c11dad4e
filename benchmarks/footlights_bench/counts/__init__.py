"""Counts suite: task steps, calls, encodes and allocations of turns and commits. Nothing here reads a real clock."""
