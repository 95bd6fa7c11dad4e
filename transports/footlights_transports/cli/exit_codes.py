"""Exit codes: 0 success, 1 the examined data is at fault, 2 the command could not be understood or begun."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def exit_on_refusal() -> Generator[None]:
    """A `FootlightsError` in the block ends the command with its message and the code 2."""
    try:
        yield
    except FootlightsError as error:
        from footlights_transports.cli.screen import printable  # it imports rich, which is slow

        typer.echo(printable(str(error)), err=True)  # a server may have written it
        raise typer.Exit(2) from None
