"""Any turns of a session as K-gent dialogues, whoever began them. Pure: no trio, no sockets.

    dialogues = TurnDialogues(buffer_chunks=5)
    dialogues.take(event, now)       what an event of the core adds
    dialogues.lose_sight(now)        the end of those that are open, when the core will not tell how they ended

The correlation id of such a dialogue is the id of its turn, and its mode is `reflect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from footlights_transports.views.kgent.pure.messages import DialogueMode, ErrorCode
from footlights_transports.views.kgent.pure.reading import BrokeOff, Committed, SpokeAll, TurnReading
from footlights_transports.views.kgent.pure.remembering import speech_of
from footlights_transports.views.kgent.pure.telling import Telling

if TYPE_CHECKING:
    from footlights.events import StreamEvent
    from footlights_transports.views.kgent.pure.messages import ChatEvent
    from footlights_transports.views.kgent.pure.reading import SoulEvent


@define
class _Open:
    reading: TurnReading
    telling: Telling
    whole: SpokeAll | None = None

    def told(self, event: SoulEvent, now: float) -> list[ChatEvent]:
        match event:
            case Committed():
                assert self.whole is not None, "what counts was said"
                speech = speech_of(self.whole, event, None, now)
                return self.telling.complete(speech, self.whole.tokens, self.whole.template, now)
            case BrokeOff(code=None):
                return self.telling.end(now)
            case BrokeOff(code=ErrorCode() as code, meaning=meaning):
                return self.telling.fail(code, now, meaning=meaning)
            case SpokeAll():
                self.whole = event
            case _:
                pass
        return self.telling.take(event, now)


class TurnDialogues:
    """The turns of one session. Of a turn, all events must come, from its first."""

    def __init__(self, buffer_chunks: int) -> None:
        self._buffer_chunks = buffer_chunks
        self._open: dict[str, _Open] = {}

    def take(self, event: StreamEvent, now: float) -> list[ChatEvent]:
        turn_id = event.turn_id
        if turn_id not in self._open:
            telling = Telling(turn_id, DialogueMode.REFLECT, self._buffer_chunks)
            self._open[turn_id] = _Open(TurnReading(turn_id), telling)
        dialogue = self._open[turn_id]
        told = [each for happened in dialogue.reading.take(event) for each in dialogue.told(happened, now)]
        if dialogue.reading.is_over:
            del self._open[turn_id]
        return told

    def lose_sight(self, now: float) -> list[ChatEvent]:
        dialogues, self._open = self._open, {}
        return [told for each in dialogues.values() for told in each.told(each.reading.lose_sight(), now)]
