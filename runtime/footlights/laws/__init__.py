"""The laws of a stream, and a checker for any recording of one.

A recording is what one subscriber got, in the order it got it: many turns of many sessions, mixed. The
checker is the second opinion about the runtime, so it knows nothing of the lifecycle table or of how streams
are made. It never raises because of what it is given to judge. What a declared gap may have hidden is excused,
as long as the gap has room for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights.laws.checker import check
    from footlights.laws.recording import check_jsonl
    from footlights.laws.statutes import LAWS, Violation

__all__ = ["LAWS", "Violation", "check", "check_jsonl"]

_HOMES = {
    "footlights.laws.checker": "check",
    "footlights.laws.recording": "check_jsonl",
    "footlights.laws.statutes": "LAWS Violation",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
