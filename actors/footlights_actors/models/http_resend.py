"""Resend check: whether a request that failed may be sent once more.

A server may close an idle connection at the moment at which a request is sent over it. Such a request may be sent
again, on a new connection. No other request may, because the server may have read it and begun to work.

The HTTP library does not distinguish the two, and treats half a status line like none. So its trace extension is used:
it shows whether the request opened a connection, and every opened connection is watched from then on.
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
    """Request hook of a client: trace this request."""
    request.extensions[_TRACE] = _Trace()


def was_lost(error: httpx2.HTTPError) -> bool:
    """Whether this error means that a reused connection lost the request."""
    return isinstance(error.__cause__, _Unanswered) and not error.request.extensions[_TRACE].connected


class _Unanswered(httpcore2.ReadError):
    """The connection ended before the first byte of an answer."""


class _Trace:
    """The library's trace of one request."""

    def __init__(self) -> None:
        self.connected = False
        """Whether a connection was opened for this request."""

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        if event.partition(".")[2] in _OPENED:
            self.connected = True
            _watch(info["return_value"])


def _watch(stream: httpcore2.AsyncNetworkStream) -> None:
    """Make `stream` raise `_Unanswered` when it ends before the first byte of an answer."""
    kind = type(stream)
    itself = weakref.ref(stream)  # avoids a reference cycle
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
