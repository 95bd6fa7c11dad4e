"""The edge: events as JSON, and JSON as events.

What leaves is written as it stands, because the runtime made it. What enters is trusted in nothing: unknown
fields are refused, nothing is coerced, every value has its domain. A refusal is always one `InvalidEvent`
whose message reads `<path>: <sentence>`, for example `payload.progress: must be between 0 and 1`. It never
quotes what somebody said.
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

# Its readers take a while to make, and a stage whose turns are all performed by the standard actors reads nothing.
_HOMES = {"footlights.wire.reading": "decode from_wire payload_from_wire"}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
