"""Requests of AG-UI clients: what of a RunAgentInput is said, and what is refused, with a reason that quotes none."""

from __future__ import annotations

from typing import Any

import pytest

from footlights.errors import InvalidCommand
from footlights_transports.views.ag_ui.pure.request import FrontendTools, read_request
from tests.kit.views.ag_ui_kit import asking

SECRET = "my-secret"
YES = {"interruptId": "a-000001", "status": "resolved", "payload": {"approved": True}}


def user(content: object) -> dict[str, Any]:
    return {"id": "1", "role": "user", "content": content}


def assistant(content: object) -> dict[str, Any]:
    return {"id": "2", "role": "assistant", "content": content}


def test_the_last_message_of_the_user_is_said_and_earlier_ones_are_ignored() -> None:
    messages = [user("A room?"), assistant("Which?"), user("The attic."), assistant("Well.")]
    request = read_request(asking("", messages=messages, state={"a": 1}, forwardedProps=[7], unknown=None))
    assert (request.said, dict(request.approvals)) == ("The attic.", {})


def test_text_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "A room,"}, {"type": "text", "text": "please."}]
    assert read_request(asking("", messages=[user(parts)])).said == "A room,\nplease."


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        (YES, True),
        ({**YES, "payload": {"approved": False}}, False),
        ({**YES, "payload": True}, True),
        ({"interruptId": "a-000001", "status": "cancelled"}, False),
    ],
)
def test_an_answer_to_an_interrupt_says_yes_or_no_and_not_the_old_message_again(entry: object, answer: bool) -> None:
    request = read_request(asking("", messages=[user("Buy it."), assistant("Sure?")], resume=[entry]))
    assert dict(request.approvals) == {"a-000001": answer}
    assert request.said == ("Yes." if answer else "No.")


def test_a_new_message_beside_an_answer_is_said() -> None:
    messages = [user("Buy it."), assistant("Sure?"), user("Yes, and an ale.")]
    request = read_request(asking("", messages=messages, resume=[YES]))
    assert (request.said, dict(request.approvals)) == ("Yes, and an ale.", {"a-000001": True})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"threadId": None}, "threadId: must be a string."),
        ({"threadId": ""}, "threadId: must not be empty."),
        ({"runId": 7}, "runId: must be a string."),
        ({"messages": None}, "messages: must have a message of the role user"),
        ({"messages": SECRET}, "messages: must be a list of objects."),
        ({"messages": [SECRET]}, "messages: must be a list of objects."),
        ({"messages": [assistant(SECRET)]}, "messages: must have a message of the role user"),
        ({"messages": [user([{"type": "image", "source": SECRET}])]}, "only text can be said"),
        ({"messages": [user(7)]}, "content: must be a list of objects."),
        ({"resume": {}}, "resume: must be a list of objects."),
        ({"resume": [{"payload": True}]}, "resume: each entry needs the interruptId"),
        ({"resume": [{**YES, "payload": SECRET}]}, "resume: the payload of an answer must be"),
        ({"resume": [{**YES, "payload": None}]}, "resume: the payload of an answer must be"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidCommand) as refused:
        read_request({**asking("Hello."), **changes})
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)


def test_the_tools_of_a_page_are_refused_clearly() -> None:
    with pytest.raises(FrontendTools, match="Leave `tools` empty"):
        read_request(asking("Hello.", tools=[{"name": SECRET, "description": "", "parameters": {}}]))
