"""Traces of turns: events written to files without their text. A turn never waits for its trace."""
