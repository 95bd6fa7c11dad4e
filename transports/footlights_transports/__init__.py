"""How people and programs reach a stage: the command line, and what moves bytes."""
