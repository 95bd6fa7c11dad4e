"""Callouts for tests: a listener that hears everything, an event that may be spoken, a clock, and a voice."""

from __future__ import annotations

import io
import wave
from typing import TYPE_CHECKING, Any

import trio

from footlights_transports.views.mission.pure.history import DAY_MS, History
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import Decision, decide, voice_failed
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    Tier,
)
from footlights_transports.views.mission.pure.text import compose

if TYPE_CHECKING:
    from footlights_transports.views.mission.pure.payload import UtilityPayload


def _tone() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(b"\0\x40\0\xc0" * 40)
    return file.getvalue()


TONE = _tone()
"""A WAV file."""


class ToneVoice:
    """A voice that says the same whatever it is to say."""

    async def speak(self, payload: UtilityPayload) -> bytes:
        await trio.lowlevel.checkpoint()
        return TONE


LISTENING = Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE)
THREAT = MissionEventType.THREAT_UPDATE
CRITICAL = Classification.CRITICAL


def mission_event(
    change: str,
    event_type: MissionEventType = THREAT,
    classification: Classification = CRITICAL,
    mission_id: str = "heist",
    **fields: Any,
) -> MissionEvent:
    """A confirmed event. `fields` replace any field of it."""
    given: dict[str, Any] = {
        "event_id": "e1",
        "certainty": Certainty.CONFIRMED,
        "text": compose(event_type, classification, change=change),
    }
    return MissionEvent(mission_id=mission_id, event_type=event_type, classification=classification, **(given | fields))


def clock_ms() -> int:
    return round(trio.current_time() * 1_000)


NOON = 1_000 * DAY_MS + DAY_MS // 2


class Told:
    """A history, and the decisions that add to it."""

    def __init__(self, context: Context = LISTENING) -> None:
        self.history = History()
        self.context = context

    def tell(self, made: MissionEvent, at: int) -> Decision:
        decision = decide(made, self.context, self.history, NOON + at)
        self.history = decision.history
        return decision

    def fail(self, made: MissionEvent, at: int) -> Decision:
        decision = voice_failed(self.tell(made, at), self.history, NOON + at)
        self.history = decision.history
        return decision


def verdict(decision: Decision) -> tuple[str | None, int]:
    return decision.payload.suppression.reason, decision.payload.suppression.cooldown_ms
