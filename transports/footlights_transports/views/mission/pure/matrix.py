"""Prompt-style matrix: which events are spoken, in which format and at which length.

The first row that fits decides. Rows about an event type come before rows about a classification, and the last row fits
everything. A test compares the table in the documentation with this one, cell by cell.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    SpeechMode,
    SuppressionReason,
    Tier,
    VoiceMode,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from footlights_transports.views.mission.pure.payload import Context, MissionEvent

EventClass: TypeAlias = MissionEventType | Classification

MODE_CHARS = {SpeechMode.CALLOUT: 220, SpeechMode.BRIEFING: 420, SpeechMode.DEBRIEF: 420}
"""The maximum length of each format, whatever the row allows."""


class Speak(StrEnum):
    """Whether a row allows speech."""

    NO = "no"
    """Never."""
    YES = "yes"
    """Unless the callout breaks a rule or a limit."""
    CONDITIONAL = "conditional"
    """Only news, within the mission rate."""
    OPTIONAL = "optional"
    """Only the outcome of an operator's action."""


@frozen
class Row:
    """One row. None stands for any."""

    tier: Tier | None
    states: tuple[SessionState, ...] | None
    voice_modes: tuple[VoiceMode, ...] | None
    classes: tuple[EventClass, ...] | None
    certainties: tuple[Certainty, ...] | None
    speech: SpeechMode | None
    """The format; None is a block of text without speech."""
    max_chars: int
    speak: Speak
    suppression: tuple[SuppressionReason, ...]
    """The reasons that the contract names for this row. All other reasons apply to every row that allows speech."""

    def allows(self, certainty: Certainty) -> bool:
        return _is_in(certainty, self.certainties)

    def fits(self, event: MissionEvent, context: Context) -> bool:
        return (
            self.tier in (None, context.tier)
            and _is_in(context.session_state, self.states)
            and _is_in(context.voice_mode, self.voice_modes)
            and (_is_in(event.event_type, self.classes) or _is_in(event.classification, self.classes))
            and self.allows(event.certainty)
        )

    @staticmethod
    def narrowed(speech: SpeechMode, wanted: SpeechMode | None) -> SpeechMode:
        """The format that a caller wants if it is no wider than that of the row, otherwise that of the row."""
        return speech if wanted is None or MODE_CHARS[wanted] > MODE_CHARS[speech] else wanted

    def max_chars_in(self, mode: SpeechMode) -> int:
        """The smaller of the limits of the row and the format."""
        return min(self.max_chars, MODE_CHARS[mode])


# Short names, so that each row fits on a line.
_ANY = None
_NOT_ACTIVE = (SessionState.IDLE, SessionState.REQUESTING, SessionState.STOPPING, SessionState.ERROR)
_ACTIVE = (SessionState.ACTIVE,)
_SILENT = (VoiceMode.OFF, VoiceMode.DND)
_NORMAL = (VoiceMode.NORMAL,)
_URGENT = (VoiceMode.NORMAL, VoiceMode.CRITICAL_ONLY)
_ACTION_REQUIRED = (MissionEventType.ACTION_REQUIRED,)
_DEBRIEF = (MissionEventType.DEBRIEF,)
_GRAVE = (Classification.CRITICAL, Classification.ACTION)
_WARN = (Classification.WARN,)
_INFO = (Classification.INFO,)
_SURE = (Certainty.CONFIRMED, Certainty.REASONED)
_LIKELY = (Certainty.CONFIRMED, Certainty.REASONED, Certainty.HYPOTHESIS)
_BLOCK = None
_BRIEFING, _DEBRIEFING, _CALLOUT = SpeechMode.BRIEFING, SpeechMode.DEBRIEF, SpeechMode.CALLOUT
_NO, _YES, _IF_NEWS, _IF_LINKED = Speak.NO, Speak.YES, Speak.CONDITIONAL, Speak.OPTIONAL
_INELIGIBLE = (SuppressionReason.CONTEXT_INELIGIBLE,)
_EVIDENCE = (SuppressionReason.MISSING_EVIDENCE,)
_BUDGET = (SuppressionReason.DEDUPE_COOLDOWN, SuppressionReason.VOICE_BUDGET_EXCEEDED)
_RATE = (SuppressionReason.DEDUPE_COOLDOWN, SuppressionReason.MISSION_RATE_LIMITED)
_T0, _T1 = Tier.TEXT_ONLY, Tier.AWARE

# fmt: off
MATRIX: tuple[Row, ...] = (
    #   tier  state        voice mode event class       certainty speech      max  speak       suppression
    Row(_T0,  _ANY,        _ANY,    _ANY,             _ANY,    _BLOCK,      900, _NO,        _INELIGIBLE),
    Row(_T1,  _NOT_ACTIVE, _ANY,    _ANY,             _ANY,    _BLOCK,      900, _NO,        _INELIGIBLE),
    Row(_T1,  _ACTIVE,     _SILENT, _ANY,             _ANY,    _BLOCK,      900, _NO,        _INELIGIBLE),
    Row(_T1,  _ACTIVE,     _NORMAL, _ACTION_REQUIRED, _SURE,   _BRIEFING,   420, _YES,       _EVIDENCE),
    Row(_T1,  _ACTIVE,     _NORMAL, _DEBRIEF,         _ANY,    _DEBRIEFING, 420, _IF_LINKED, _INELIGIBLE),
    Row(_T1,  _ACTIVE,     _URGENT, _GRAVE,           _ANY,    _CALLOUT,    220, _YES,       _BUDGET),
    Row(_T1,  _ACTIVE,     _NORMAL, _WARN,            _LIKELY, _CALLOUT,    160, _IF_NEWS,   _RATE),
    Row(_T1,  _ACTIVE,     _NORMAL, _INFO,            _SURE,   _CALLOUT,    140, _IF_NEWS,   _RATE),
    Row(_ANY, _ANY,        _ANY,    _ANY,             _ANY,    _BLOCK,      900, _NO,        _INELIGIBLE),
)
# fmt: on


def row_of(event: MissionEvent, context: Context) -> Row:
    """The row that decides about an event, by the certainty that the event claims."""
    return next(row for row in MATRIX if row.fits(event, context))


def _is_in(value: StrEnum, allowed: Container[StrEnum] | None) -> bool:
    return allowed is None or value in allowed
