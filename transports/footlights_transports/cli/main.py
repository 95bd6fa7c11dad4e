"""The entry point of the `footlights` command. It says what to install when the command line is not."""

from __future__ import annotations

import sys

_EXTRA = ("typer", "rich")
_INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C ended; typer does, too, if the interrupt reaches it bare."""


def main() -> None:
    try:
        from footlights_transports.cli.commands import app

        app(prog_name="footlights")  # a command loads what it needs itself
    except ModuleNotFoundError as error:
        missing, _, _ = (error.name or "").partition(".")
        if missing not in _EXTRA:
            raise
        sys.stderr.write(f"The command line needs {missing}. Install it with: pip install 'footlights[server]'\n")
        sys.exit(2)
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        sys.exit(_INTERRUPTED)  # a nursery wrapped it; whoever pressed Ctrl-C knows
