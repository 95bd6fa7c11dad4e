"""Narrated runs (the Dexi protocol): a turn as plan, steps, tools, output and summary over Server-Sent Events.

`run` has a run and its log, `runs` all runs of a server, `routes` the HTTP routes. How a mode is decided is not here
but in `footlights.modes`, and nothing here knows how a turn works inside.
"""
