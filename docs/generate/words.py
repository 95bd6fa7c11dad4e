"""The sentences that the reference needs and the source does not have. What the source says comes first.

A sentence for something that is not there, or that the source has words for itself, is an error: see `say`.
"""

from __future__ import annotations

_WORDS = {
    # events
    "EventType.TOOL_CALL_STARTED": "A tool began to run.",
    "EventType.TOOL_CALL_RESULT": "It came back, failed, or was canceled. Each call that was started gets one.",
    "StreamEvent.schema_v": 'The version of the envelope: `"1.0"`.',
    "StreamEvent.session_id": "Whose turn it is.",
    "StreamEvent.turn_id": "Which turn it is; never used again.",
    "StreamEvent.seq": "The place in the turn, from 0, the same for every subscriber.",
    "StreamEvent.mono_ts_ms": "Milliseconds of the runtime's monotonic clock.",
    "StreamEvent.event_type": "One of the types below.",
    "StreamEvent.payload": "What this event says.",
    "StreamEvent.wall_ts": "Seconds since the epoch.",
    "Payload.ext": "An extension's own data.",
    "Payload.dropped_seq_ranges": "What this subscriber will not get of the turn before this event.",
    "SeqRange.start_seq": "The first one missing.",
    "SeqRange.end_seq": "The last one missing.",
    "Ext.namespace": "`ext.<publisher>.<extension>`.",
    "Ext.data": "Any JSON.",
    "ErrorInfo.code": "Stable, for programs.",
    "ErrorInfo.message": "A sentence, for people.",
    "Issue.code": "Stable, for programs.",
    "Issue.message": "A sentence, for people.",
    "Issue.ref": "The intent or the rule concerned.",
    "Heard.seq": "The last event they took in.",
    "Heard.text": "The turn's text up to it.",
    "ModelSelected.model_id": "The model's id in the cast.",
    "ModelSelected.reason": "Why this one: `default` or `requested` with the standard cast.",
    "ModelLoading.model_id": "The model that was selected.",
    "ModelLoading.cold_start": "Whether it is loaded from nothing.",
    "ModelLoading.progress": "0 to 1; left out of the first one.",
    "ModelReady.model_id": "The model that was selected.",
    "ModelReady.warm_state": "How ready it was when it was asked for: `hot`, `warm` or `cold`.",
    "ModelReady.load_ms": "How long it took; 0 if it was hot.",
    "TokenDelta.delta": "The text; never empty.",
    "ToolCallStarted.tool_call_id": "Unique in its turn.",
    "ToolCallStarted.tool_name": "The tool's name in the cast.",
    "ToolCallResult.tool_call_id": "The call that this is the result of.",
    "ToolCallResult.tool_name": "The same name that the call was started with.",
    "ToolCallResult.canceled": "Whether the turn was interrupted before the result could count.",
    "ToolCallResult.summary": "One sentence that may be shown to people.",
    "ToolCallResult.error": "Why it failed, if it did.",
    "TurnInterrupted.reason": "One of the reasons below.",
    "TurnInterrupted.detail": "A stable code, or the name of the exception that ended the turn. Never its text.",
    "TurnInterrupted.heard": "What the player took in, if the host said so.",
    "TurnFinal.text": "All that was said: a subscriber that missed deltas heals from it.",
    "TurnFinal.authoritative": "Always false: words change nothing.",
    "CommitFinal.commit_digest": "Stands for everything that was decided; chained to the session's commit before.",
    "CommitFinal.commit_outcome": "`ok`: the changes are true now. `fail_closed`: nothing changed.",
    "CommitFinal.issues": "Why it failed closed; empty if it is ok.",
    "CommitFinal.artifact_refs": "Names of what was kept elsewhere; empty in this version.",
    "CommitFinal.commit_id": "A short name for the commit.",
    "CommitFinal.authoritative": "Always true.",
    # limits
    "Limits.max_intents_per_turn": "Intents that one turn and its tools may stage together.",
    "Limits.max_sessions": "Sessions of the whole stage that are open.",
    # lifecycle
    "TurnState.NEW": "Nothing was emitted yet.",
    "TurnState.LOADING": "The chosen model is loading, and says so.",
    "TurnState.INTERRUPTED": "`turn_interrupted` is out; the authority will fail the turn closed.",
    "TurnState.FINAL": "`turn_final` is out; the authority judges what the turn asked for.",
    "TurnState.COMMITTED": "`commit_final` is out. Nothing follows.",
    # enums
    "Mode.EXECUTION": "Words and tools.",
    "SessionState.OPEN": "Turns may begin.",
    "SessionState.CLOSED": "Every turn is settled, every stream has ended.",
    "ToolState.OK": "It ended well.",
    "ToolState.ERROR": "It ended, and failed.",
    # errors
    "FootlightsError": "The root of them all.",
    "UnknownSession": "There is no open session with that id.",
    "UnknownTurn": "The session never gave out that turn id, or the ledger holds nothing about it.",
    "SessionClosed": "The session, or its stage, takes no more turns and subscribers.",
}

_asked_for: set[str] = set()


def say(name: str, in_source: str = "") -> str:
    """What the source says, or else what is written here, on one line."""
    if in_source and name in _WORDS:
        raise SystemExit(f"words.py: the source has words for {name} itself now; remove ours")
    _asked_for.add(name)
    try:
        return " ".join((in_source or _WORDS[name]).split())
    except KeyError:
        raise SystemExit(f"words.py: nobody says what {name} is") from None


def unused() -> set[str]:
    return _WORDS.keys() - _asked_for
