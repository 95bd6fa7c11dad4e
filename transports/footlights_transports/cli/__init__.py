"""Command line: the `footlights` commands and the screens that show their results.

`commands.py` defines the application and `laws`; the other commands are in the modules that it adds. A command
imports slow modules when it runs. Library code imports nothing from here.
"""
