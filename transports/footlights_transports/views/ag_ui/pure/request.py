"""Request of a run: the fields of AG-UI's RunAgentInput that mean something here.

Clients send the whole conversation with each run. Chat is not memory: the last message of the user is what is said, and
earlier ones are ignored. So are `state` and `context`. If the run answers interrupts, the messages
are what the run before was about: only a message of the user at their very end is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attrs import field, frozen

from footlights.errors import FootlightsError, InvalidCommand
from footlights.wire import values
from footlights.wire.values import Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

_YES, _NO = "Yes.", "No."
"""Said for a user who only answers interrupts."""


class FrontendTools(FootlightsError):
    """The client offers tools of its own. Here, tools are what the authority plane judges, and belong to the server."""

    code = "frontend_tools"


@frozen
class RunRequest:
    """One run that a client asks for."""

    thread_id: str
    run_id: str
    said: str
    approvals: Mapping[str, bool]
    """The answers to interrupts, by their ids."""
    resumes: bool = field(default=False, eq=False)
    """Whether the client says that it comes back after a lost connection: `forwardedProps.footlights.resumes`."""


def read_request(fields: Mapping[str, Any]) -> RunRequest:
    """Raises `InvalidCommand` and `FrontendTools`. Fields that are not known are ignored."""
    thread_id, run_id = (_read(fields, name) for name in ("threadId", "runId"))
    if fields.get("tools"):
        raise FrontendTools("tools: the tools of a page cannot be used here. Leave `tools` empty.")
    if "/" in run_id or run_id in (".", ".."):
        raise InvalidCommand("runId: must not contain a slash, or be . or .. because it is a part of an address.")
    answers = [_answer(each) for each in _objects(fields, "resume")]
    approvals = dict(answers)
    if len(approvals) != len(answers):
        raise InvalidCommand("resume: answers an interrupt more than once.")
    resumes = _is_true(fields, "forwardedProps", "footlights", "resumes")
    messages = _objects(fields, "messages")
    if approvals and (not messages or messages[-1].get("role") != "user"):
        return RunRequest(thread_id, run_id, _YES if all(approvals.values()) else _NO, approvals, resumes)
    of_user = [each for each in messages if each.get("role") == "user"]
    if not of_user:
        raise InvalidCommand("messages: must have a message of the role user. The last one is what is said.")
    return RunRequest(thread_id, run_id, _said(of_user[-1].get("content")), approvals, resumes)


def _is_true(value: object, *names: str) -> bool:
    for name in names:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return value is True


def _read(fields: Mapping[str, Any], name: str) -> str:
    try:
        return values.name(fields.get(name))
    except Unfit as error:
        raise InvalidCommand(f"{name}: {error}.") from None


def _objects(fields: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    given: object = fields.get(name)
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in cast("list[object]", given)):
        raise InvalidCommand(f"{name}: must be a list of objects.")
    return cast("list[dict[str, Any]]", given)


def _said(content: object) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = _objects({"content": content}, "content")
    if any(each.get("type") != "text" or not isinstance(each.get("text"), str) for each in parts):
        raise InvalidCommand("messages: only text can be said here, and the last message of the user has other parts.")
    return "\n".join(each["text"] for each in parts)


def _answer(entry: Mapping[str, Any]) -> tuple[str, bool]:
    """The answer to an interrupt. One that is cancelled is a no."""
    interrupt_id, payload = entry.get("interruptId"), entry.get("payload")
    if not isinstance(interrupt_id, str):
        raise InvalidCommand("resume: each entry needs the interruptId that it answers.")
    status = entry.get("status", "resolved")
    if status not in ("resolved", "cancelled"):
        raise InvalidCommand("resume: the status of an answer must be resolved or cancelled.")
    if status == "cancelled":
        return interrupt_id, False
    approved = cast("dict[str, Any]", payload).get("approved") if isinstance(payload, dict) else payload
    if type(approved) is not bool:
        raise InvalidCommand('resume: the payload of an answer must be {"approved": true} or {"approved": false}.')
    return interrupt_id, approved
