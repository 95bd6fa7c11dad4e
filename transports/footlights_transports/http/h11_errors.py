"""Errors of h11, without the reference cycle that they come with.

h11 raises the error for a malformed request from a method of that error, so the error holds the frame of the method,
and the frame holds the error. The cycle also holds the connection and all that the client sent, and only the garbage
collector would find it. Both servers read requests with h11, wsproto's and Hypercorn's.
"""

from __future__ import annotations

from typing import NoReturn

import h11

_METHOD = "_reraise_as_remote_protocol_error"


def hold_no_input() -> None:
    """From now on, in this process, an error of h11 is gone when it was handled."""
    if hasattr(h11.LocalProtocolError, _METHOD):
        setattr(h11.LocalProtocolError, _METHOD, _raise_as_remote)


def _raise_as_remote(error: h11.LocalProtocolError) -> NoReturn:
    """What h11's method does, except that the frame forgets the error."""
    error.__class__ = h11.RemoteProtocolError  # type: ignore[assignment]
    try:
        raise error
    finally:
        del error
