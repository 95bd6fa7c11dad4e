"""Text of a callout: four labelled lines.

    CHANGE: threat_update/warn -- The guard has noticed you.
    IMPACT: The door will be locked.
    NEXT: Leave by the window before the bell.
    EVIDENCE: world#/guard

A voice speaks the first three lines from the beginning, without labels, as far as `shorten` lets it. A line that lacks
a mark at its end is spoken with one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from attrs import asdict, frozen

from footlights_transports.views.mission.pure.shortening import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights_transports.views.mission.pure.terms import Classification, MissionEventType

TEXT_BLOCK_CHARS = 900
"""Of the four lines together, with the line breaks."""
WHAT_CHANGED_CHARS = 160
WHY_IT_MATTERS_CHARS = 220
NEXT_ACTION_CHARS = 160

NOT_STATED = "not stated."
"""The body of a line without content. A voice leaves it out."""
NO_EVIDENCE = "none."
"""The body of the evidence line without evidence."""

_LABEL = re.compile(r"(?:CHANGE: [a-z_]+/[a-z]+ -- |IMPACT: |NEXT: |EVIDENCE: )")
_LAST_MARKS = " .!?…"
_CLOSING = "\"'\u201d\u2019»)]"
_ANCHOR_CHARS = TEXT_BLOCK_CHARS - WHAT_CHANGED_CHARS - WHY_IT_MATTERS_CHARS - NEXT_ACTION_CHARS - 3


@frozen(kw_only=True)
class TextPayload:
    """The four lines."""

    what_changed: str
    """What is different now: one sentence, at most 160 characters."""
    why_it_matters: str
    """What that means for the mission, and what is at risk: at most 220 characters."""
    next_action: str
    """What to do, to what, and by when: at most 160 characters."""
    evidence_anchor: str
    """Where it can be checked."""

    @property
    def document(self) -> dict[str, str]:
        """As plain JSON."""
        return asdict(self)

    @property
    def block(self) -> str:
        """The four lines as one text."""
        return "\n".join(self.document.values())

    @property
    def change(self) -> str:
        """`what_changed` without its label."""
        return _body(self.what_changed)

    @property
    def spoken(self) -> str:
        """The words that a voice may speak."""
        return " ".join(self.spoken_lines)

    @property
    def spoken_lines(self) -> list[str]:
        """The same line by line."""
        said = self._bodies
        return [*map(_ended, said[:-1]), *said[-1:]]

    @property
    def _bodies(self) -> list[str]:
        bodies = (_body(line) for line in (self.what_changed, self.why_it_matters, self.next_action))
        return [body for body in bodies if body not in ("", NOT_STATED)]

    @property
    def names_evidence(self) -> bool:
        """Whether the evidence line names evidence."""
        return normalize(_body(self.evidence_anchor)) not in _NO_ANCHORS

    def broken_rules(self) -> Iterator[str]:
        """The names of the rules that these lines break."""
        yield from (f"{name}_empty" for name, line in self.document.items() if not _body(line))
        if len(self.what_changed) > WHAT_CHANGED_CHARS:
            yield "what_changed_too_long"
        if len(sentences(_body(self.what_changed))) > 1:
            yield "what_changed_several_sentences"
        if len(self.why_it_matters) > WHY_IT_MATTERS_CHARS:
            yield "why_it_matters_too_long"
        if len(self.next_action) > NEXT_ACTION_CHARS:
            yield "next_action_too_long"
        if len(self.block) > TEXT_BLOCK_CHARS:
            yield "text_block_too_long"


@frozen(kw_only=True)
class RunningText(TextPayload):
    """A plain text in these lines, which may end within a sentence."""

    @property
    def spoken_lines(self) -> list[str]:
        return [" ".join(self._bodies)]


def compose(
    event_type: MissionEventType,
    classification: Classification,
    *,
    change: str,
    impact: str = NOT_STATED,
    next_action: str = NOT_STATED,
    evidence_refs: Sequence[str] = (),
) -> TextPayload:
    """The four lines with their labels."""
    return TextPayload(
        what_changed=f"{_change_label(event_type, classification)}{change}",
        why_it_matters=f"IMPACT: {impact}",
        next_action=f"NEXT: {next_action}",
        evidence_anchor=f"EVIDENCE: {_anchor(evidence_refs)}",
    )


def compose_plain(
    event_type: MissionEventType, classification: Classification, text: str, evidence_refs: Sequence[str] = ()
) -> TextPayload:
    """The four lines for a plain text: its first sentence, then as many words as each line holds.

    No word is lost: the rest goes into the third line, which may then be too long.
    """
    words = " ".join(text.split())
    first = sentences(words)[0].rstrip() if words else words
    change = _whole_words(first, WHAT_CHANGED_CHARS - len(_change_label(event_type, classification))) or first
    rest = words[len(change) :].lstrip()
    impact = _whole_words(rest, WHY_IT_MATTERS_CHARS - len("IMPACT: ")) or rest
    lines = compose(
        event_type,
        classification,
        change=change,
        impact=impact or NOT_STATED,
        next_action=rest[len(impact) :].lstrip() or NOT_STATED,
        evidence_refs=evidence_refs,
    )
    return RunningText(**lines.document)


def _whole_words(text: str, max_chars: int) -> str:
    """As many whole words from the beginning as fit; an empty text if the first one does not fit."""
    if len(text) <= max_chars:
        return text
    return text[: max_chars + 1].rpartition(" ")[0].rstrip()


def normalize(text: str) -> str:
    """A text without differences of case, spacing, final punctuation and character encoding."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split()).rstrip(_LAST_MARKS)


_NO_ANCHORS = frozenset(map(normalize, ("", NO_EVIDENCE, NOT_STATED)))


def _change_label(event_type: MissionEventType, classification: Classification) -> str:
    return f"CHANGE: {event_type.value}/{classification.value} -- "


def _body(line: str) -> str:
    label = _LABEL.match(line)
    return " ".join(line[label.end() if label else 0 :].split())


def _ended(body: str) -> str:
    """The words of a line with a mark at their end."""
    return body if unicodedata.category((body.rstrip(_CLOSING) or ".")[-1]).startswith("P") else f"{body}."


def _anchor(refs: Sequence[str]) -> str:
    """As many whole refs as fit, and the number of the others."""
    if not refs:
        return NO_EVIDENCE
    for count in range(len(refs), 0, -1):
        more = len(refs) - count
        anchor = ", ".join(refs[:count]) + (f", and {more} more" if more else "")
        if len("EVIDENCE: ") + len(anchor) <= _ANCHOR_CHARS:
            return anchor
    return f"{len(refs)} that are too long for this line"
