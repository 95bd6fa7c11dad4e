"""Models: what the drivers add to a model's own time."""
