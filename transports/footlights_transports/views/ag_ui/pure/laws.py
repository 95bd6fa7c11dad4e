"""Laws of AG-UI streams, and a checker for what one client received of a run.

They are what AG-UI's own client enforces, and what Footlights promises beyond it: exactly one end, the commit before
it, one turn, no text twice. The checker is independent of the projection, and never raises because of what it is given.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

AG_UI_LAWS: Mapping[str, str] = MappingProxyType(
    {
        "object": "Every event is an object with a type that AG-UI 1.0 has, and the fields of that type.",
        "started_first": "A run begins with its only RUN_STARTED.",
        "one_end": "A run has one end, RUN_FINISHED or RUN_ERROR, and nothing follows it.",
        "run": "RUN_STARTED and RUN_FINISHED name the same thread and run.",
        "one_turn": "Every event names the run's turn in its metadata.",
        "seq_order": "The seq in the metadata never goes back.",
        "message_pairs": "Text messages begin and end one at a time, each once, and content is in one that is open.",
        "message_closed": "No text message is open when a tool call begins, and when the run ends.",
        "tool_pairs": "A tool call has one start, then arguments, one end, and at most one result.",
        "tool_closed": "Every tool call has its result when a run succeeds, unless a part of it is forgotten.",
        "one_commit": "A run has one footlights.commit, right before its end, unless the server could not know it.",
        "commit_agrees": "Only a commit with outcome ok ends in success or interrupt.",
        "interrupts": "An interrupt asks at least one question, each with an id.",
    }
)
"""Each law by its name."""

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "RUN_STARTED": ("threadId", "runId"),
    "RUN_FINISHED": ("threadId", "runId"),
    "RUN_ERROR": ("message",),
    "TEXT_MESSAGE_START": ("messageId",),
    "TEXT_MESSAGE_CONTENT": ("messageId", "delta"),
    "TEXT_MESSAGE_END": ("messageId",),
    "TOOL_CALL_START": ("toolCallId", "toolCallName"),
    "TOOL_CALL_ARGS": ("toolCallId", "delta"),
    "TOOL_CALL_END": ("toolCallId",),
    "TOOL_CALL_RESULT": ("messageId", "toolCallId", "content"),
    "CUSTOM": ("name",),
}
_COMMIT = "footlights.commit"
_FORGOTTEN = "footlights.text_forgotten"
_NOT_KNOWN = ("commit_unknown", "internal")
"""The codes of a RUN_ERROR without a commit."""


@frozen
class AgUiViolation:
    """One broken law. `event` counts the events from 1; None if an event is missing."""

    law: str
    event: int | None
    sentence: str


def check_ag_ui(events: Iterable[object], *, complete: bool = True) -> list[AgUiViolation]:
    """Every violation in what one client received of one run, over all its connections. None is lawful.

    With `complete=False` the recording was cut short, and need not have an end.
    """
    checker = _Checker()
    for event in events:
        checker.see(event)
    return checker.close(complete=complete)


class _Checker:
    def __init__(self) -> None:
        self._violations: list[AgUiViolation] = []
        self._number = 0
        self._run: tuple[object, object] | None = None
        self._turn: object = None
        self._seq = -1
        self._message: str | None = None
        self._messages: set[str] = set()
        self._calls: dict[str, str] = {}
        """The last event of each tool call, by its id."""
        self._commit: str | None = None
        self._commit_at: int | None = None
        self._is_forgotten = False
        self._is_over = False

    def see(self, event: object) -> None:
        self._number += 1
        body = _object(event)
        kind = str(body.get("type"))
        missing = [name for name in _FIELDS.get(kind, ("type",)) if not isinstance(body.get(name), str)]
        if kind not in _FIELDS or missing:
            self._report("object", f"an event of type {kind!a} without {missing}")
            return
        if self._is_over:
            self._report("one_end", f"{kind} after the end")
        if (self._run is None) is not (kind == "RUN_STARTED"):
            self._report("started_first", f"{kind} as event {self._number}")
        self._check_metadata(body)
        getattr(self, f"_see_{kind.lower()}")(body)

    def close(self, *, complete: bool) -> list[AgUiViolation]:
        if complete and not self._is_over:
            self._violations.append(AgUiViolation("one_end", None, "the run never ends"))
        return self._violations

    def _report(self, law: str, sentence: str) -> None:
        self._violations.append(AgUiViolation(law, self._number, sentence))

    def _check_metadata(self, body: dict[str, Any]) -> None:
        metadata = _object(body.get("metadata"))
        turn_id, seq = metadata.get("turn_id"), metadata.get("seq", self._seq)
        self._turn = self._turn or turn_id
        if turn_id is None or turn_id != self._turn:
            self._report("one_turn", "another turn, or none")
        if type(seq) is not int or seq < self._seq:
            self._report("seq_order", "a seq that goes back, or is no number")
        else:
            self._seq = seq

    # -- runs

    def _see_run_started(self, body: dict[str, Any]) -> None:
        self._run = self._run or (body["threadId"], body["runId"])

    def _see_run_error(self, body: dict[str, Any]) -> None:
        self._check_end(is_known=body.get("code") not in _NOT_KNOWN)

    def _see_run_finished(self, body: dict[str, Any]) -> None:
        if (body["threadId"], body["runId"]) != self._run:
            self._report("run", "another thread or run")
        outcome = _object(body.get("outcome", {"type": "success"}))
        kind = outcome.get("type")
        self._check_end(is_known=True)
        if (kind == "cancelled") is (self._commit == "ok"):
            self._report("commit_agrees", f"{kind} after a commit that is {self._commit}")
        if kind == "interrupt" and not all(_object(each).get("id") for each in _items(outcome.get("interrupts"))):
            self._report("interrupts", "an interrupt without a question")
        is_open = any(last != "TOOL_CALL_RESULT" for last in self._calls.values())
        if is_open and kind != "cancelled" and not self._is_forgotten:
            self._report("tool_closed", "a tool call without its result")

    def _check_end(self, *, is_known: bool) -> None:
        self._is_over = True
        if self._message is not None:
            self._report("message_closed", "an open message at the end")
        if is_known and self._commit_at != self._number - 1:
            self._report("one_commit", "an end without a commit right before it")

    def _see_custom(self, body: dict[str, Any]) -> None:
        self._is_forgotten = self._is_forgotten or body["name"] == _FORGOTTEN
        if body["name"] != _COMMIT:
            return
        if self._commit_at is not None:
            self._report("one_commit", "a second commit")
        self._commit_at = self._number
        self._commit = str(_object(body.get("value")).get("commit_outcome"))

    # -- text

    def _see_text_message_start(self, body: dict[str, Any]) -> None:
        if self._message is not None or body["messageId"] in self._messages:
            self._report("message_pairs", "a start while a message is open, or of one that was there")
        self._message = body["messageId"]
        self._messages.add(body["messageId"])

    def _see_text_message_content(self, body: dict[str, Any]) -> None:
        if body["messageId"] != self._message or not body["delta"]:
            self._report("message_pairs", "content of a message that is not open, or none")

    def _see_text_message_end(self, body: dict[str, Any]) -> None:
        if body["messageId"] != self._message:
            self._report("message_pairs", "the end of a message that is not open")
        self._message = None

    # -- tools

    def _see_tool_call_start(self, body: dict[str, Any]) -> None:
        if self._message is not None:
            self._report("message_closed", "an open message when a tool call begins")
        self._step(body, None)

    def _see_tool_call_args(self, body: dict[str, Any]) -> None:
        self._step(body, "TOOL_CALL_START")

    def _see_tool_call_end(self, body: dict[str, Any]) -> None:
        self._step(body, "TOOL_CALL_ARGS")

    def _see_tool_call_result(self, body: dict[str, Any]) -> None:
        self._step(body, "TOOL_CALL_END")

    def _step(self, body: dict[str, Any], follows: str | None) -> None:
        if self._calls.get(body["toolCallId"]) != follows:
            self._report("tool_pairs", f"{body['type']} out of order")
        self._calls[body["toolCallId"]] = body["type"]


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _items(value: object) -> list[object]:
    """At least one, which need not be what it should."""
    return cast("list[object]", value) if isinstance(value, list) and value else [None]
