"""JSON text of a client, parsed only if it has a reasonable number of values. Pure.

A quarter of a megabyte of brackets becomes a hundred thousand objects, and everybody would wait until they are made.
"""

from __future__ import annotations

import re

import orjson

MAX_VALUES = 16_384
"""Values of one text: its commas and opening brackets, except those in strings."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class TooManyValues(ValueError):
    """The text has more than `MAX_VALUES`."""


def parse(text: str | bytes) -> object:
    """What the text says. Raises `ValueError` if it is no JSON, and `TooManyValues`."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    # Most texts have few of these characters even if those in strings are counted, which is much cheaper.
    if _marks(data) > MAX_VALUES and _marks(_STRING.sub(b"", data)) > MAX_VALUES:
        raise TooManyValues(f"It has more than {MAX_VALUES} values.")
    return orjson.loads(data)


def _marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
