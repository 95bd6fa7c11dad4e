"""A server that listens: where, and how to have it take nobody new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen
class Listening:
    """What a server says of itself once it can be reached."""

    port: int
    """The one bound, also if any free one was asked for."""
    stop_accepting: Callable[[], None]
    """Take no new connections. Those there are live on."""
