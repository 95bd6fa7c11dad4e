"""JSON text from clients, parsed within limits on the number of values and on their depth.

A quarter of a megabyte of brackets would become a hundred thousand objects, and all other clients would wait for it.
"""

from __future__ import annotations

import re
from typing import Any, cast

import orjson

from footlights_transports.errors import BadFrame

MAX_DEPTH = 16
MAX_VALUES = 16_384
"""Values in one text, counted as its commas and opening brackets outside of strings."""

_CONTAINERS = (dict, list)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class TooManyValues(ValueError):
    """The text has more than `MAX_VALUES`."""


def parse(text: str | bytes) -> object:
    """The value of the text. Raises `ValueError` if it is not JSON, and `TooManyValues`."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    # Counting in strings too is much cheaper, and most texts are within the limit even so.
    if _marks(data) > MAX_VALUES and _marks(_STRING.sub(b"", data)) > MAX_VALUES:
        raise TooManyValues(f"It has more than {MAX_VALUES} values.")
    return orjson.loads(data)


def _marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def read_object(frame: str | bytes) -> dict[str, Any]:
    """The JSON object in a frame or body. Raises `BadFrame`, which does not quote it."""
    try:
        value = parse(frame)
    except TooManyValues:
        raise BadFrame(f"A command has no more than {MAX_VALUES} values.") from None
    except ValueError:
        raise BadFrame("The frame is not valid JSON.") from None
    if not isinstance(value, dict):
        raise BadFrame("A command is a JSON object.")
    fields = cast("dict[str, Any]", value)
    if _is_deeper(fields, MAX_DEPTH):
        raise BadFrame(f"A command nests no deeper than {MAX_DEPTH} levels.")
    return fields


def _is_deeper(value: dict[str, Any], levels: int) -> bool:
    values: list[Any] = [value]
    for _ in range(levels):
        containers = [each for each in values if type(each) in _CONTAINERS]
        values = [child for each in containers for child in (each if hasattr(each, "append") else each.values())]
    return any(type(each) in _CONTAINERS for each in values)
