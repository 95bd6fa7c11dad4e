"""`footlights new`: a game of one's own from a template. `template/` holds its files as they are written."""
