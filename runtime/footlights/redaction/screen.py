"""Screen of a turn: holds back the end of its text until an output filter knows what of it must not be shown.

    screen.take("My key is sk-")     "My key is ", and the rest is held
    screen.take("live... ")          the rest; where it must be hidden stands in `screen.spans`

The text that a model says passes the screen before it is numbered, so a secret that is split over tokens is whole when
it is judged. From then on nothing about a text changes: which subscriber gets which piece, in how many events, with
what gaps, and whether it resumes, has no influence on what is hidden. The turn keeps its text as it was said, with the
places to hide; the hidden characters are replaced one by one, so that offsets hold, only in the events of views whose
text is covered. Pure: no trio, no clock.

Held is the last word, as a rule: a filter says up to which place its answer is settled. Whatever follows the text in
its turn (a tool, an end) settles it, and a cancel drops what is held, as if it had not been said. No more than
`MAX_HELD` characters are held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import evolve, frozen

from footlights.events import Ext, TokenDelta, ToolCallResult, TurnFinal, TurnInterrupted
from footlights.redaction.spans import Span, blotted, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights.events import JsonValue, Payload, StreamEvent

MAX_HELD = 1_024
"""Characters. A longer word is not held any further: it is hidden as far as the filter finds it by its beginning."""
_CONTEXT = 256
"""Characters before the held ones that a filter gets again: the words before a secret may tell that it is one."""
_MAX_WINDOW = 16_384
"""Characters that a filter gets at most: a key in many lines, of which the first were let through, fits."""
_WINDOW_PER_NEWS = 64
"""A filter is asked again when this times the new characters exceeds its text, so its work per character is bounded."""
_MAX_QUOTED, _MIN_QUOTED_CHARS, _MAX_QUOTED_CHARS = 64, 4, 1_024
_MAX_DEPTH = 16


@frozen
class Found:
    """Answer of an output filter."""

    spans: Sequence[Span]
    """What must not be shown."""
    settled: int
    """Up to this place the answer is the same whatever follows the text."""


class OutputFilter(Protocol):
    """What views must not show: secrets, or whatever a host's moderation finds. Called often; plain and quick.

    If it raises, everything that it was asked about is hidden.
    """

    def find(self, text: str, *, ended: bool) -> Found:
        """What to hide in a text. `ended`: nothing follows, so all of it has to be settled."""
        ...


class Screen:
    """The held end of one turn's text, and the places in the text before it that are hidden."""

    def __init__(self, output_filter: OutputFilter) -> None:
        self.spans: list[Span] = []
        """What to hide in the text that was let through, sorted and disjoint. It only grows at its end."""
        self._filter = output_filter
        self._window = ""
        self._window_begin = 0
        self._said = 0
        """Characters of the turn's text that were let through. What follows them in the window is held."""
        self._asked = 0
        """Length of the turn's text when the filter was asked last."""
        self._quoted: list[str] = []

    def take(self, text: str, said: int) -> str:
        """The text that may be said now. `said` is the length of the turn's text so far."""
        self._follow(said)
        self._window += text
        known = self._window_begin + len(self._window)
        if (known - self._asked) * _WINDOW_PER_NEWS < len(self._window):
            return ""
        return self._let_through(ended=False)

    def flush(self, said: int) -> str:
        """All that is held: something else follows it."""
        self._follow(said)
        return self._let_through(ended=True)

    def take_whole(self, text: str, said: int) -> None:
        """Let a text through that is an event of its own. Nothing may be held."""
        self._follow(said)
        self._window += text
        self._let_through(ended=True)

    def drop(self) -> None:
        """Forget what is held: it will not be said."""
        self._window = self._window[: self._said - self._window_begin]

    def note(self, value: JsonValue) -> None:
        """Hide what the filter finds in a tool's result from now on also where the text quotes it."""
        for name, text in _texts(value, "", _MAX_DEPTH):
            before = f'"{name}": "'
            for begin, end in self._find(f'{before}{text}"', ended=True).spans:
                quoted = text[max(begin - len(before), 0) : max(end - len(before), 0)]
                is_new = _MIN_QUOTED_CHARS <= len(quoted) <= _MAX_QUOTED_CHARS and quoted not in self._quoted
                if is_new and len(self._quoted) < _MAX_QUOTED:
                    self._quoted.append(quoted)

    def cover(self, payload: Payload) -> Payload | None:
        """The payload as covered views show it; None if it is the same."""
        match payload:
            case TokenDelta(delta=delta, offset=offset):
                covered: Payload = self.covered_delta(delta, offset) or payload
            case TurnFinal():
                covered = evolve(payload, text=blotted(payload.text, self.spans))
            case TurnInterrupted(heard=heard) if heard is not None:
                covered = evolve(payload, heard=evolve(heard, text=self.covered(heard.text, 0)))
            case ToolCallResult(summary=summary, error=error):
                covered = evolve(
                    payload,
                    summary=None if summary is None else self._clean(summary),
                    error=None if error is None else evolve(error, message=self._clean(error.message)),
                )
            case _:
                covered = payload
        if payload.ext is not None:
            covered = evolve(
                covered, ext=Ext(payload.ext.namespace, self._clean_value("", payload.ext.data, _MAX_DEPTH))
            )
        return None if covered == payload else covered

    def covered_delta(self, delta: str, offset: int) -> TokenDelta | None:
        """The payload of a delta as covered views show it; None if nothing of it is hidden."""
        covered = self.covered(delta, offset)
        return None if covered == delta else TokenDelta(covered, offset)

    def covered(self, text: str, offset: int) -> str:
        """A piece of the turn's text, from this place on, without what is hidden."""
        spans, end = self.spans, offset + len(text)
        if not spans or spans[-1][1] <= offset:
            return text
        return blotted(text, [(max(a - offset, 0), min(b, end) - offset) for a, b in spans if a < end and b > offset])

    # -- inside

    def _follow(self, said: int) -> None:
        """Forget what was let through and then refused, because it was too much for the turn."""
        if said < self._said:
            self.spans[:] = [(begin, min(end, said)) for begin, end in self.spans if begin < said]
            self._window, self._window_begin, self._said, self._asked = "", said, said, said

    def _let_through(self, *, ended: bool) -> str:
        window, begin = self._window, self._window_begin
        known = self._asked = begin + len(window)
        found = self._find(window, ended=ended)
        settled = known if ended else max(begin + found.settled, known - MAX_HELD, self._said)
        for a, b in found.spans:
            if (place := (max(begin + a, self._said), min(begin + b, settled)))[0] < place[1]:
                self._hide(place)
        let_through = window[self._said - begin : settled - begin]
        self._said = settled
        open_spans = [a for a, b in found.spans if b >= len(window.rstrip())]
        context = min(settled - _CONTEXT, *(begin + a for a in open_spans)) if open_spans else settled - _CONTEXT
        self._window_begin = max(begin, context, known - _MAX_WINDOW)
        self._window = window[self._window_begin - begin :]
        return let_through

    def _hide(self, place: Span) -> None:
        if self.spans and self.spans[-1][1] == place[0]:
            place = self.spans.pop()[0], place[1]
        self.spans.append(place)

    def _find(self, text: str, *, ended: bool) -> Found:
        """The boundary around a filter of the host, whose failure hides everything."""
        try:
            found = self._filter.find(text, ended=ended)
            spans, settled = list(found.spans), found.settled
        except Exception:  # noqa: BLE001 - see above
            return Found([(0, len(text))], len(text))
        for quoted in self._quoted:
            place = text.find(quoted)
            while place >= 0:
                spans.append((place, place + len(quoted)))
                place = text.find(quoted, place + len(quoted))
            settled = min(settled, len(text) - _overlap(text, quoted))
        return Found(merged(spans), settled)

    def _clean(self, text: str) -> str:
        return blotted(text, self._find(text, ended=True).spans)

    def _clean_value(self, name: str, value: JsonValue, depth: int) -> JsonValue:
        if isinstance(value, str):
            before = f'"{name}": "'
            return blotted(before + value, self._find(f'{before}{value}"', ended=True).spans)[len(before) :][
                : len(value)
            ]
        if isinstance(value, list):
            return [self._clean_value(name, each, depth - 1) for each in value] if depth else None
        if isinstance(value, dict):
            return {key: self._clean_value(key, each, depth - 1) for key, each in value.items()} if depth else None
        return value


def covered_text(output_filter: OutputFilter, text: str) -> str:
    """A text that is complete, as covered views show it."""
    screen = Screen(output_filter)
    screen.take_whole(text, 0)
    return screen.covered(text, 0)


def shown(event: StreamEvent) -> StreamEvent:
    """The event as covered views show it."""
    if event.covered is None:
        return event
    missing = event.payload.dropped_seq_ranges
    return evolve(event, payload=evolve(event.covered, dropped_seq_ranges=missing), covered=None)


def _texts(value: JsonValue, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, with the name of the member that holds it."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, str(value)
    elif depth and isinstance(value, list):
        for each in value:
            yield from _texts(each, name, depth - 1)
    elif depth and isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, key, depth - 1)


def _overlap(text: str, quoted: str) -> int:
    """How many characters at the end of the text may be the beginning of what is quoted."""
    longest = min(len(quoted) - 1, len(text))
    return next((length for length in range(longest, 0, -1) if text.endswith(quoted[:length])), 0)
