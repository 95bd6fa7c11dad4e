"""How people reach a stage: the command line."""
