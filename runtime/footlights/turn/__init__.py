"""One turn: its lifecycle, its stream of events, its extensions, its summary and its commit.

Nothing here knows other turns.
"""
