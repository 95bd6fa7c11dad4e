"""Traces of turns: events written to files without what anybody said. No content, and nothing that a turn waits for."""
