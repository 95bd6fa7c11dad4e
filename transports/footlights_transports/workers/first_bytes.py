"""First bytes of a request: which world it names, as far as they tell. Pure.

The router decides by them without parsing HTTP, and leaves every byte to the worker. It goes by the address as it is
written: `GET /w/harbour/v1 HTTP/1.1`. What is no such request belongs to the main world, whose worker answers it.
"""

from __future__ import annotations

import re

from footlights_transports.worlds.names import MAIN, is_world_name

ENOUGH = 128
"""Bytes after which it is decided: the longest method and name that count are shorter."""
_METHOD = re.compile(rb"(?:\r?\n)*[A-Z]{1,16} ")
_BEGINS_LIKE_ONE = re.compile(rb"[\r\nA-Z]*")
_PREFIX = b"/w/"
_END_OF_NAME = re.compile(rb"[/? \r\n]")
_FOR_THE_SERVER = re.compile(rb"(?:GET|HEAD) /(?:livez|healthz|readyz|metrics)[ ?]")


def world_in(first: bytes) -> str | None:
    """The world that a request names; None if more bytes have to come."""
    is_all = len(first) >= ENOUGH or b"\n" in first.lstrip(b"\r\n")
    method = _METHOD.match(first)
    if method is None:
        return MAIN if is_all or not _BEGINS_LIKE_ONE.fullmatch(first) else None
    path = first[method.end() :]
    if not path.startswith(_PREFIX):
        return None if _PREFIX.startswith(path) and not is_all else MAIN
    name = path.removeprefix(_PREFIX)
    end = _END_OF_NAME.search(name)
    if end is None:
        return MAIN if is_all else None
    written = name[: end.start()].decode("ascii", "replace")
    return written if is_world_name(written) else MAIN


def is_for_the_server(first: bytes) -> bool:
    """Whether the request is about all workers: a probe, or the metrics."""
    return _FOR_THE_SERVER.match(first) is not None
