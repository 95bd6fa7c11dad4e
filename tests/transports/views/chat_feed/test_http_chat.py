"""The chat over HTTP: reading, dropping, and access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import BusyRule, CommitOutcome, TurnParams
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.config.views import VIEWS
from footlights_transports.http.app import document_of_routes
from footlights_transports.views.chat_feed.pure.feed import ChatRole
from tests.kit.peers.http_peer import CuedModel, HttpGuest, open_house, refused, taken

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 10
TOKENS = {"ann": "token-of-ann-0123456789", "bob": "token-of-bob-0123456789"}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


async def chat(guest: HttpGuest) -> list[dict[str, str]]:
    messages: list[dict[str, str]] = taken(await guest.client.get(f"{guest.path}/chat"))["messages"]
    return messages


async def until(guest: HttpGuest, come: Callable[[list[str]], bool]) -> list[dict[str, str]]:
    """Read the chat until this holds: a task of its own fills it."""
    with trio.fail_after(PATIENCE):
        while True:
            messages = await chat(guest)
            if come([each["content"] for each in messages]):
                return messages
            await trio.lowlevel.checkpoint()


async def test_a_turn_has_messages_of_the_player_the_agent_and_the_system() -> None:
    async with open_house() as house:
        guest = await house.start()
        assert await chat(guest) == []
        turn_id = await guest.begin_turn("Good evening!")
        await guest.finalize(turn_id)
        messages = await until(guest, lambda contents: "The turn is committed." in contents)
    assert [(each["role"], each["content"]) for each in messages] == [
        ("user", "Good evening!"),
        ("system", "The turn has begun."),
        ("agent", "Good evening, my friend."),
        ("system", "The turn is committed."),
    ]
    assert all(each.keys() == {"timestamp", "role", "content"} for each in messages)


async def test_begun_turns_of_every_server_are_in_the_chat_and_refused_ones_are_not() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        guest = await house.start()
        await chat(guest)
        user = house.access.policy.admit(None)
        house.access.begin_turn(user, guest.session_id, "by ~another way", TurnParams())
        answer = await house.client.post(
            f"{guest.path}/turns", json={"input": "refused", "params": {"busy": BusyRule.REJECT}}
        )
        assert refused(answer) == (409, "busy")
        messages = await until(guest, lambda contents: len(contents) >= 2)
        model.cue("another")
    assert [each["content"] for each in messages if each["role"] == "user"] == ["by ~another way"]


@pytest.mark.shows("feed-11")
async def test_dropping_a_chat_does_not_affect_the_turn() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        guest = await house.start()
        await chat(guest)
        turn_id = await guest.begin_turn("half ~the rest")
        await until(guest, lambda contents: len(contents) >= 2)
        assert (await house.client.delete(f"{guest.path}/chat")).status_code == 204
        assert [each["content"] for each in await chat(guest)] == ["The turn has begun."]
        model.cue("the")
        assert (await guest.finalize(turn_id)).commit_outcome is CommitOutcome.OK
        messages = await until(guest, lambda contents: "The turn is committed." in contents)
    assert [each["content"] for each in messages] == ["The turn has begun.", "half the rest", "The turn is committed."]


@pytest.mark.shows("feed-42", "feed-45")
async def test_an_approval_is_asked_for_in_the_chat_and_given_by_a_turn() -> None:
    async with open_house(cast=tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as house:
        guest = await house.start()
        await chat(guest)
        await guest.finalize(await guest.begin_turn("sell me the lantern"))
        asked = await until(guest, lambda contents: any("a-000001" in each for each in contents))
        assert asked[-1]["role"] == "system"
        answer = TurnParams(approvals={"a-000001": True})
        assert (await guest.finalize(await guest.begin_turn("Yes.", answer))).commit_outcome is CommitOutcome.OK
        assert house.stage.world["lantern"] == "the traveller"
        again = await guest.finalize(await guest.begin_turn("Yes!", answer))
        assert again.commit_outcome is CommitOutcome.FAIL_CLOSED
        messages = await until(guest, lambda contents: any("of that id" in each for each in contents))
    assert "Approved (a-000001): Buy the lantern of the house for 15 coins?" in [each["content"] for each in messages]


@pytest.mark.parametrize("approvals", [{"a-1": True}, {"a-000001": "yes"}, {"a-000001": None}, [], "a-000001"])
async def test_an_invalid_approval_is_refused_without_quoting_it(approvals: Any) -> None:
    async with open_house() as house:
        guest = await house.start()
        body = {"input": "Yes.", "params": {"approvals": approvals}}
        answer = await house.client.post(f"{guest.path}/turns", json=body)
        assert refused(answer) == (400, "invalid_command")
        assert "a-1" not in answer.text


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_chat_belongs_to_its_user(method: str) -> None:
    async with open_house(policy=AccessPolicy(TOKENS), headers=bearer("ann")) as house:
        guest = await house.start()
        await chat(guest)
        address = f"{guest.path}/chat"
        assert refused(await house.client.request(method, address, headers=bearer("bob"))) == (404, "unknown_session")
        assert refused(await house.client.request(method, address, headers={"authorization": ""})) == (
            401, "unauthorized"
        )  # fmt: skip
        assert (await house.client.request(method, address)).is_success


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_closed_or_unknown_session_has_no_chat(method: str) -> None:
    async with open_house() as house:
        guest = await house.start()
        await chat(guest)
        await guest.close()
        for path in (guest.path, "/v1/sessions/nobody"):
            assert refused(await house.client.request(method, f"{path}/chat")) == (404, "unknown_session")


async def test_reading_too_often_is_refused() -> None:
    limits = WireLimits(user_commands_per_second=0.001, user_command_burst=2)
    async with open_house(wire_limits=limits) as house:
        guest = await house.start()
        await chat(guest)
        assert refused(await house.client.get(f"{guest.path}/chat")) == (429, "rate_limited")


@pytest.mark.shows("feed-28", "feed-32")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_a_chat_cannot_be_written(method: str) -> None:
    async with open_house() as house:
        guest = await house.start()
        answer = await house.client.request(method, f"{guest.path}/chat", json={"content": "You agreed."})
        assert answer.status_code == 405


async def test_a_stopped_server_no_longer_listens_for_turns() -> None:
    async with open_house() as house:
        assert len(house.access.turn_listeners) == 1
        house.stop()
        await house.stopped.wait()
        assert house.access.turn_listeners == []


def test_the_openapi_document_lists_the_roles() -> None:
    document: Any = document_of_routes(VIEWS, wants_tokens=True)
    message = document["components"]["schemas"]["ChatMessage"]
    assert message["properties"]["role"]["enum"] == [role.value for role in ChatRole]
    assert set(message["required"]) == {"timestamp", "role", "content"}
    assert document["paths"]["/v1/sessions/{session_id}/chat"].keys() == {"parameters", "get", "delete"}
