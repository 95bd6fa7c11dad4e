"""Laws of a stream, and a checker for recordings.

A recording is the sequence of events that one subscriber got: many turns of many sessions, interleaved. The checker is
a second opinion about the runtime, so it never imports the lifecycle table or the code that makes streams. It reports
malformed events and never raises because of them. An event that a declared gap may have hidden is excused, as long as
the gap has room for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights.laws.checker import check
    from footlights.laws.law_texts import LAWS, Violation
    from footlights.laws.recording import check_jsonl

__all__ = ["LAWS", "Violation", "check", "check_jsonl"]

_HOMES = {
    "footlights.laws.checker": "check",
    "footlights.laws.recording": "check_jsonl",
    "footlights.laws.law_texts": "LAWS Violation",
}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
