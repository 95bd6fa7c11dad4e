"""Entry point of the `footlights` command. It names the extra to install if a module is missing."""

from __future__ import annotations

import sys

from footlights.extras import installing

_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended; typer uses it for a bare `KeyboardInterrupt`."""


def main() -> None:
    try:
        from footlights_transports.cli.commands import app

        app(prog_name="footlights")  # each command imports what it needs
    except ModuleNotFoundError as error:
        how = installing(error)
        if how is None:
            raise
        sys.stderr.write(f"This needs {error.name}: {how}\n")
        sys.exit(2)
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        sys.exit(_INTERRUPTED)  # a nursery wrapped the interrupt
