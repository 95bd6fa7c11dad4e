"""Lost requests: those that got no byte of answer on a connection that had been used before.

A server may close an idle connection in the moment in which a request is sent over it. Such a request may be sent once
more, on a new connection. No other may: the server may have read it, and begun to work.

The HTTP library does not tell the two apart, and takes half a status line for none. So its trace of each request, which
it hands to an extension of the request, is used: it shows whether the request opened a connection, and each connection
that is opened is watched from then on.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import httpcore2

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

_TRACE = "trace"
_OPENED = frozenset({"connect_tcp.complete", "start_tls.complete"})


async def trace(request: httpx2.Request) -> None:
    """Watch this request. For the event hooks of a client."""
    request.extensions[_TRACE] = _Trace()


def was_lost(error: httpx2.HTTPError) -> bool:
    """Whether this is the failure of a request that a connection lost which had been used before."""
    return isinstance(error.__cause__, _Unanswered) and not error.request.extensions[_TRACE].connected


class _Unanswered(httpcore2.ReadError):
    """The connection ended before any byte of the answer to the last request."""


class _Trace:
    """What becomes of one request, as the library tells it."""

    def __init__(self) -> None:
        self.connected = False
        """Whether a connection was opened for this request."""

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event.partition(".")[2] in _OPENED:
            self.connected = True
            _watch(info["return_value"])


def _watch(stream: httpcore2.AsyncNetworkStream) -> None:
    """From now on, a `stream` that ends where an answer should begin raises `_Unanswered`."""
    kind = type(stream)
    itself = weakref.ref(stream)  # else the two would hold each other, and be left to the collector
    unanswered = False

    async def write(buffer: bytes, timeout: float | None = None) -> None:
        nonlocal unanswered
        unanswered = True
        await kind.write(_alive(itself), buffer, timeout)

    async def read(max_bytes: int, timeout: float | None = None) -> bytes:
        nonlocal unanswered
        data = b""
        try:
            data = await kind.read(_alive(itself), max_bytes, timeout)
        except httpcore2.ReadError:
            if not unanswered:
                raise
        if unanswered and not data:
            raise _Unanswered("The server closed the connection without an answer.")
        unanswered = False
        return data

    vars(stream).update(write=write, read=read)


def _alive(itself: weakref.ref[httpcore2.AsyncNetworkStream]) -> httpcore2.AsyncNetworkStream:
    stream = itself()
    assert stream is not None, "only the stream itself calls this"
    return stream
