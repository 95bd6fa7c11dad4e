"""`footlights play`: a game in the terminal."""
