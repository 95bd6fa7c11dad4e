"""Errors of h11, without the reference cycle that h11 makes with them.

h11 raises the error for a malformed request from a method of that error, so the error holds the frame of the method,
and the frame holds the error. The cycle also holds the connection and everything that the client sent, until the
garbage collector finds it. Both servers parse requests with h11: one through wsproto, one through Hypercorn.
"""

from __future__ import annotations

from typing import NoReturn

import h11

_METHOD = "_reraise_as_remote_protocol_error"


def hold_no_input() -> None:
    """Replace the method in this process, so that an error of h11 is freed when it was handled."""
    if hasattr(h11.LocalProtocolError, _METHOD):
        setattr(h11.LocalProtocolError, _METHOD, _raise_as_remote)


def _raise_as_remote(error: h11.LocalProtocolError) -> NoReturn:
    """Do what h11's method does, except that the frame forgets the error."""
    error.__class__ = h11.RemoteProtocolError  # type: ignore[assignment]
    try:
        raise error
    finally:
        del error
