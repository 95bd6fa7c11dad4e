"""The text of a callout, and what a voice may say of it.

    CHANGE: threat_update/warn -- The guard has noticed you.
    IMPACT: The door will be locked.
    NEXT: Leave by the window before the bell.
    EVIDENCE: world#/guard

A voice says what these lines say, without their labels and without the evidence, from the beginning, and stops at
the end of a word. It adds nothing.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_transports.views.mission.pure.matrix import TEXT_BLOCK_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights_transports.views.mission.pure.terms import Classification, MissionEventType

WHAT_CHANGED_CHARS = 160
WHY_IT_MATTERS_CHARS = 220
NEXT_ACTION_CHARS = 160

NOT_STATED = "not stated."
"""What stands in a field about which nothing was said. A voice leaves it out."""
NO_EVIDENCE = "none."
"""What stands for evidence when there is none."""

_LABEL = re.compile(r"(?:CHANGE: [a-z_]+/[a-z]+ -- |IMPACT: |NEXT: |EVIDENCE: )")
_SENTENCE_END = re.compile(r"[.!?…][\"'\u201d\u2019)\]]*\s+(?=\S)")
_LAST_MARKS = " .!?…"
_ANCHOR_CHARS = TEXT_BLOCK_CHARS - WHAT_CHANGED_CHARS - WHY_IT_MATTERS_CHARS - NEXT_ACTION_CHARS - 3


@frozen(kw_only=True)
class TextPayload:
    """The four lines."""

    what_changed: str
    """What is different now: one sentence, 160 characters."""
    why_it_matters: str
    """What that means for the mission, and what is at risk: 220 characters."""
    next_action: str
    """What to do, to what, and by when: 160 characters."""
    evidence_anchor: str
    """Where it can be checked."""

    @property
    def document(self) -> dict[str, str]:
        """As plain JSON."""
        return {
            "what_changed": self.what_changed,
            "why_it_matters": self.why_it_matters,
            "next_action": self.next_action,
            "evidence_anchor": self.evidence_anchor,
        }

    @property
    def block(self) -> str:
        """The four lines as one text."""
        return "\n".join(self.document.values())

    @property
    def change(self) -> str:
        """What changed, without its label."""
        return _body(self.what_changed)

    @property
    def spoken(self) -> str:
        """All that a voice may say of it."""
        bodies = (_body(line) for line in (self.what_changed, self.why_it_matters, self.next_action))
        return " ".join(body for body in bodies if body != NOT_STATED)

    @property
    def names_evidence(self) -> bool:
        """Whether it says where it can be checked."""
        return normalize(_body(self.evidence_anchor)) not in _NO_ANCHORS

    def broken_rules(self) -> Iterator[str]:
        """The names of what is empty, too long, or more than one sentence."""
        for name, line in self.document.items():
            if not _body(line):
                yield f"{name}_empty"
        if len(self.what_changed) > WHAT_CHANGED_CHARS:
            yield "what_changed_too_long"
        if _SENTENCE_END.search(_body(self.what_changed)):
            yield "what_changed_several_sentences"
        if len(self.why_it_matters) > WHY_IT_MATTERS_CHARS:
            yield "why_it_matters_too_long"
        if len(self.next_action) > NEXT_ACTION_CHARS:
            yield "next_action_too_long"
        if len(self.block) > TEXT_BLOCK_CHARS:
            yield "text_block_too_long"


def compose(
    event_type: MissionEventType,
    classification: Classification,
    *,
    change: str,
    impact: str = NOT_STATED,
    next_action: str = NOT_STATED,
    evidence_refs: Sequence[str] = (),
) -> TextPayload:
    """The four lines, with their labels."""
    return TextPayload(
        what_changed=f"{_change_label(event_type, classification)}{change}",
        why_it_matters=f"IMPACT: {impact}",
        next_action=f"NEXT: {next_action}",
        evidence_anchor=f"EVIDENCE: {_anchor(evidence_refs)}",
    )


def compose_plain(
    event_type: MissionEventType, classification: Classification, text: str, evidence_refs: Sequence[str] = ()
) -> TextPayload:
    """The four lines for one plain text: its first sentence, then as many words as each line holds.

    Not a word is lost: what fits nowhere stays in the third line, which is then longer than it may be.
    """
    words = " ".join(text.split())
    end = _SENTENCE_END.search(words)
    first = words[: end.end()].rstrip() if end else words
    change = shorten(first, WHAT_CHANGED_CHARS - len(_change_label(event_type, classification))) or first
    rest = words[len(change) :].lstrip()
    impact = shorten(rest, WHY_IT_MATTERS_CHARS - len("IMPACT: ")) or rest
    return compose(
        event_type,
        classification,
        change=change,
        impact=impact or NOT_STATED,
        next_action=rest[len(impact) :].lstrip() or NOT_STATED,
        evidence_refs=evidence_refs,
    )


def shorten(text: str, max_chars: int) -> str:
    """As many whole words from the beginning as fit; nothing if not even the first one does."""
    if len(text) <= max_chars:
        return text
    return text[: max_chars + 1].rpartition(" ")[0].rstrip()


def normalize(text: str) -> str:
    """What makes two texts the same: not their case, their spaces, their last mark, nor how a letter is encoded."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split()).rstrip(_LAST_MARKS)


_NO_ANCHORS = frozenset(map(normalize, ("", NO_EVIDENCE, NOT_STATED)))


def _change_label(event_type: MissionEventType, classification: Classification) -> str:
    return f"CHANGE: {event_type.value}/{classification.value} -- "


def _body(line: str) -> str:
    label = _LABEL.match(line)
    return " ".join(line[label.end() if label else 0 :].split())


def _anchor(refs: Sequence[str]) -> str:
    """As many refs as fit whole, and how many there are besides."""
    if not refs:
        return NO_EVIDENCE
    for count in range(len(refs), 0, -1):
        more = len(refs) - count
        anchor = ", ".join(refs[:count]) + (f", and {more} more" if more else "")
        if len("EVIDENCE: ") + len(anchor) <= _ANCHOR_CHARS:
            return anchor
    return f"{len(refs)} that are too long for this line"
