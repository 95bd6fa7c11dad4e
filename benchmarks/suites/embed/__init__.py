"""Embedding suite: frames of a game loop with a stage beside it."""
