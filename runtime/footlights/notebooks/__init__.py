"""Notebooks: what characters remember of players, by notes that the player approved."""
