"""Models on the command line: `footlights models`, and the choice of a model for the commands that play."""
