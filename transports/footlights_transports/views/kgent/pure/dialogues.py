"""Turn dialogues: every turn of a session as a dialogue, for turns that the gateway did not begin.

The correlation id of such a dialogue is the id of its turn, and its mode is `reflect`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from footlights_transports.views.kgent.pure.messages import DialogueMode
from footlights_transports.views.kgent.pure.reader import DialogueReader, Patience
from footlights_transports.views.kgent.pure.writer import DialogueWriter

if TYPE_CHECKING:
    from footlights.events import StreamEvent
    from footlights_transports.views.kgent.pure.messages import ChatEvent


class TurnDialogues:
    """The open turns of one session. It must see all events of a turn, from the first."""

    def __init__(self, buffer_chunks: int) -> None:
        self._buffer_chunks = buffer_chunks
        self._open: dict[str, tuple[DialogueReader, DialogueWriter, Patience]] = {}

    def take(self, event: StreamEvent, now: float, monotonic: float) -> list[ChatEvent]:
        """`now` is the wall clock, and `monotonic` one that never goes back."""
        turn_id = event.turn_id
        if turn_id not in self._open:
            writer = DialogueWriter(turn_id, DialogueMode.REFLECT, self._buffer_chunks)
            self._open[turn_id] = DialogueReader(turn_id), writer, Patience()
        reader, writer, patience = self._open[turn_id]
        written: list[ChatEvent] = []
        for answer in reader.take(event):
            patience.note(answer, monotonic)
            written += writer.take(answer, now)
        if reader.is_over:
            del self._open[turn_id]
        return written

    @property
    def flush_at(self) -> float:
        """When `flush` should be called."""
        return min((patience.until for _, _, patience in self._open.values()), default=inf)

    def flush(self, now: float, monotonic: float) -> list[ChatEvent]:
        """What has waited long enough for more."""
        return [
            each
            for _, writer, patience in self._open.values()
            for flush in patience.flushes(monotonic)
            for each in writer.take(flush, now)
        ]

    def lose_sight(self, now: float) -> list[ChatEvent]:
        """End the dialogues that are open, when no more events will come."""
        dialogues, self._open = self._open, {}
        return [each for reader, writer, _ in dialogues.values() for each in writer.take(reader.lose_sight(), now)]
