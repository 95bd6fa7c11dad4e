"""Models suite: a local model compared with its engine."""
