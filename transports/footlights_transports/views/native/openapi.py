"""OpenAPI schemas of the native view, and the longer descriptions of its operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import CommitOutcome
from footlights.models.budget import BudgetTier
from footlights.models.sampling import MAX_STOP_CHARS, MAX_STOPS, MAX_WHOLE
from footlights.notebooks.entries import ABOUTS
from footlights.params import BusyRule, Mode
from footlights.session.begin_once import MAX_REQUEST_CHARS
from footlights.speaker import MAX_ABOUT_BYTES
from footlights.stage.host_commits import MAX_WHY_CHARS
from footlights.turn.timeline import Part
from footlights.wire import MAX_INTEGER
from footlights_transports.access.notes import NOTE_ACTS
from footlights_transports.http.openapi import (
    APPROVALS,
    ID_OR_NULL,
    TEXT,
    answer,
    choice,
    fields,
    last_event_id,
    list_of,
    member,
    object_of,
    or_null,
    query,
    ref,
)
from footlights_transports.views.native.sse_cursor import MAX_CURSOR_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.http.openapi import Json


def _name_or_null(description: str) -> Json:
    return {"type": ["string", "null"], "minLength": 1, "description": description}


def _number_or_null(least: float, most: float) -> Json:
    return {"type": ["number", "null"], "minimum": least, "maximum": most}


NATIVE_SCHEMAS: Mapping[str, Json] = {
    "StartSession": fields({"params": or_null(ref("SessionParams"))}),
    "SessionParams": fields(
        {
            "session_id": ID_OR_NULL,
            "remote_models": {"type": ["boolean", "null"]},
            "about": {
                "type": ["object", "null"],
                "description": f"What a game server says about the player; at most {MAX_ABOUT_BYTES} bytes.",
            },
        }
    ),
    "NoteAct": fields({"act": {"enum": list(NOTE_ACTS)}}),
    "Notebook": object_of({"agreed": {"type": "boolean"}, "notes": list_of(ref("Note"))}),
    "Note": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("note_id", "by", "turn_id", "words"), TEXT),
            "about": {"enum": list(ABOUTS)},
            "approval_id": {**TEXT, "description": "The approval that it waits for; absent from a note that is kept."},
        },
        "required": ["note_id", "by", "turn_id", "words", "about"],
    },
    "BeginTurn": fields({"input": {"type": "string", "pattern": r"\S"}, "params": or_null(ref("TurnParams"))}, "input"),
    "TurnParams": fields(
        {
            "busy": choice(BusyRule),
            "mode": choice(Mode),
            "tier": choice(BudgetTier),
            "model": _name_or_null("A model of the cast."),
            "persona": _name_or_null("A persona of the cast."),
            "workload": _name_or_null("A registered workload."),
            "sampling": or_null(ref("Sampling")),
            "approvals": or_null(APPROVALS),
        }
    ),
    "Sampling": fields(
        {
            "temperature": _number_or_null(0, 2),
            "top_p": _number_or_null(0, 1),
            "min_p": _number_or_null(0, 1),
            "repeat_penalty": _number_or_null(0.5, 2),
            "frequency_penalty": _number_or_null(-2, 2),
            "stop": {
                "type": ["array", "null"],
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS},
                "maxItems": MAX_STOPS,
            },
            "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_WHOLE},
            "max_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_WHOLE},
        }
    ),
    "HostCommit": fields(
        {
            "intents": list_of(fields({"ref": TEXT, "payload": {"description": "Any JSON."}}, "ref")),
            "why": {"type": "string", "minLength": 1, "maxLength": MAX_WHY_CHARS},
        },
        "intents",
        "why",
    ),
    "Heard": fields({"seq": {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}}, "seq"),
    "Commit": object_of(
        {"commit_id": {"type": ["string", "null"]}, "commit_digest": TEXT, "commit_outcome": member(CommitOutcome)}
    ),
    "TurnSummary": object_of(
        {
            "session_id": TEXT,
            "turn_id": TEXT,
            "outcome": TEXT,
            "accepted_ms": {"type": "integer"},
            "first_token_ms": {"type": ["integer", "null"]},
            "terminal_ms": {"type": "integer"},
            "committed_ms": {"type": "integer"},
            "output_tokens": {"type": ["integer", "null"]},
            "parts": list_of(
                object_of({"part": member(Part), "took_us": {"type": "integer"}, "tool": {"type": ["string", "null"]}})
            ),
            "memory_claims": list_of(TEXT),
        }
    ),
    "CommitRecord": {
        **object_of({"session_id": TEXT, "turn_id": TEXT, "outcome": member(CommitOutcome), "commit_digest": TEXT}),
        "description": "All that was decided about one turn, and the digest that proves it.",
    },
}

MAX_STALL = 60
"""Seconds."""
CANCELED = {200: answer("The turns that this call interrupted.", object_of({"canceled": list_of(TEXT)}))}
BEGINNING: tuple[Json, ...] = (
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "An id of your own for this turn. The same id again, in the same session, answers with the same "
        "turn and begins none; with another body it is refused while the turn is retained.",
        "schema": {
            "type": "string",
            "pattern": "^[!-~]([ -~]*[!-~])?$",
            "minLength": 1,
            "maxLength": MAX_REQUEST_CHARS,
        },
    },
)
SUMMARY = {200: answer("The summary.", object_of({"summary": or_null(ref("TurnSummary"))}))}
RECORDS = {200: answer("Commits.", object_of({"commits": list_of(ref("CommitRecord"))}))}
FOLLOWING = (
    last_event_id(
        "The `id` of the last event that you have: go on after it.",
        {"type": "string", "pattern": "^[A-Za-z0-9_-]*$", "maxLength": MAX_CURSOR_CHARS},
    ),
    query(
        "begun",
        list_of(TEXT),
        "Turns that you began and of which nothing has come yet. What became of them is told, also if the server was "
        "started again before they were committed.",
    ),
    query(
        "remote_models",
        {"type": "boolean", "default": False},
        "Whether a session that a restart of the server ended may, once you are back, let its text go to models "
        "elsewhere. What it had agreed to is not kept.",
    ),
    query(
        "stall",
        {"type": "integer", "minimum": 0, "maximum": MAX_STALL, "default": 0},
        "Seconds for which the server takes nothing for this subscriber, as if the client read nothing. To try what "
        "becomes of such a client.",
    ),
)
COMMITS_FOLLOWED = {
    200: answer(
        "The commits.",
        {"description": "Each `data` is a commit, each `id` a cursor; the first may be the event `world`."},
        "text/event-stream",
    )
}
FOLLOWING_COMMITS = (
    last_event_id("The `id` of the last event that you have: go on after it.", {"type": "string"}),
    query("after", TEXT, "The same as a parameter. `genesis`: from the first commit. Without it: from now on."),
    query("under", TEXT, "A JSON pointer: only changes of that part of the world."),
)
