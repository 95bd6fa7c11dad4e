"""Entry point of the `footlights` command. It names the extra to install if the command line's modules are missing."""

from __future__ import annotations

import sys

_EXTRA = ("typer", "rich")
_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended; typer uses it for a bare `KeyboardInterrupt`."""


def main() -> None:
    try:
        from footlights_transports.cli.commands import app

        app(prog_name="footlights")  # each command imports what it needs
    except ModuleNotFoundError as error:
        missing, _, _ = (error.name or "").partition(".")
        if missing not in _EXTRA:
            raise
        sys.stderr.write(f"The command line needs {missing}. Install it with: pip install 'footlights[server]'\n")
        sys.exit(2)
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        sys.exit(_INTERRUPTED)  # a nursery wrapped the interrupt
