"""`footlights run`: one narrated run in the terminal."""
