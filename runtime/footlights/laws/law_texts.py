"""Texts of the laws, and the value that reports a violation. The documentation is generated from `LAWS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from attrs import frozen

RESTART_SEQ = 1_000_000_000
"""The first seq of events that come from the ledger, for a turn that no longer has its own stream."""

Report: TypeAlias = Callable[[str, int | None, str], None]
"""Reports a violation in one turn: the law, the seq and a sentence."""

LAWS: Mapping[str, str] = MappingProxyType(
    {
        "json": "Each line of a recording is one JSON value in which no object names a field twice.",
        "envelope": "Every event has every field of the envelope, each of its type, and no other.",
        "payload": "Every payload has the fields of its event type, each in its domain, and no other.",
        "ext": "Extension data stands only in payload.ext, as plain JSON under ext.<publisher>.<extension>.",
        "authority_label": "turn_final says that it is not authoritative, commit_final that it is.",
        "seq_first": "A turn begins at seq 0, unless the subscriber resumed it.",
        "seq_increasing": "Within a turn every seq is greater than the one before; none comes twice.",
        "seq_gap": "No seq is missing unless the next event of the turn declares it dropped.",
        "range_form": "Dropped ranges are inclusive, sorted and disjoint.",
        "range_exact": "Dropped ranges name only what is missing between the event before and their own.",
        "range_must_deliver": "Dropped ranges never cover turn_accepted, a terminal event or commit_final.",
        "restart_seq": f"From seq {RESTART_SEQ:,} on there is only what a ledger knows: how the turn ended.",
        "mono_order": "mono_ts_ms never decreases within a turn.",
        "turn_unique": "A turn id is never used again in its session.",
        "accepted_first": "The first event of a turn is turn_accepted.",
        "accepted_once": "A turn is accepted once.",
        "one_terminal": "A turn has exactly one terminal event: turn_final or turn_interrupted.",
        "terminal_silence": "Nothing follows the terminal event but commit_final.",
        "one_commit": "After its terminal event a turn has exactly one commit_final.",
        "commit_silence": "Nothing follows commit_final.",
        "commit_digest": "A commit digest is 64 lower-case hexadecimal digits.",
        "commit_issues": "A commit that failed closed says why; one that is ok has no issues.",
        "commit_interrupted": "An interrupted turn fails closed and says that it was interrupted; no other says so.",
        "failure_said": "Only a turn that failed says what was wrong; a canceled or closed one does not.",
        "cancel_wins": "A turn that a cancel won ends in turn_interrupted.",
        "token_offset": "Each delta starts where the text so far ends; only a dropped delta leaves a hole.",
        "final_text": "turn_final carries every delta at its offset, and nothing that was never sent.",
        "text_forgotten": f"A terminal event says that text is gone exactly from seq {RESTART_SEQ:,} on, and has none.",
        "heard": "What was heard is the turn's own text, up to the event it names.",
        "tool_unique": "A tool call id is used for one call in a turn.",
        "tool_partner": "Each tool result belongs to a call that was started, of the same tool.",
        "tool_once": "A tool call has one result.",
        "tool_open": "A tool call that was started has its result before the terminal event.",
        "tool_canceled": "A canceled tool result says whether side effects may have occurred.",
        "model_order": "A model is selected, may load and is ready before anything is said or done.",
        "model_shown": "A model that was not hot shows that it loads before it is ready.",
        "model_hot": "A hot model has nothing to load: no model_loading, and load_ms is 0.",
        "model_fallback": "A fallback says what was wrong, names another model, and comes before the first token.",
        "model_progress": "Progress never goes back within one load.",
    }
)
"""The text of each law, by name."""


@frozen
class Violation:
    """One violation of a law. A field is None if it could not be read, or if there is no event."""

    law: str
    session_id: str | None
    turn_id: str | None
    seq: int | None
    sentence: str

    def __str__(self) -> str:
        parts = (
            _shown(self.session_id),
            _shown(self.turn_id),
            None if self.seq is None else f"seq {self.seq}",
        )
        where = " ".join(part for part in parts if part is not None)
        return f"{self.law}: {where}: {self.sentence}" if where else f"{self.law}: {self.sentence}"


def _shown(name: str | None) -> str | None:
    # Ids come from outside: a line break in one must not break the line of a report.
    return name if name is None or name.isprintable() else ascii(name)
