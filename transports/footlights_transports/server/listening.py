"""Handle of a listening server: its port, and how to stop accepting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen
class Listening:
    """A server that accepts connections."""

    port: int
    """The bound port, also if port 0 was asked for."""
    stop_accepting: Callable[[], None]
    """Accept no new connections. Open connections go on."""
