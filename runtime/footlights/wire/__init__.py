"""Events as JSON, and JSON as events. Pure: no I/O, no trio.

Writing does not validate, because the runtime made the event. Reading validates everything: unknown fields are
refused, values are never coerced, and each value must be in its domain. A refusal is one `InvalidEvent` with the
message `<path>: <sentence>`, for example `payload.progress: must be between 0 and 1`. It never quotes the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports
from footlights.wire.values import MAX_EXT_DEPTH, MAX_INTEGER
from footlights.wire.writing import encode, payload_size, payload_to_wire, to_wire

if TYPE_CHECKING:
    from footlights.wire.reading import decode, from_wire, payload_from_wire

__all__ = [
    "MAX_EXT_DEPTH",
    "MAX_INTEGER",
    "decode",
    "encode",
    "from_wire",
    "payload_from_wire",
    "payload_size",
    "payload_to_wire",
    "to_wire",
]

# Building the readers is slow, and a stage that runs only the standard actors never reads an event.
_HOMES = {"footlights.wire.reading": "decode from_wire payload_from_wire"}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
