"""Counts suite: task steps, calls, encodes and sends of turns and commits. Nothing here reads a real clock."""
