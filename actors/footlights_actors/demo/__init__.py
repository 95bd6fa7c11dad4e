"""Demo games: a tavern and an analyst, with their documents.

Only the command line, the cast of the settings file and the benchmarks import them; no other library code does.
"""
