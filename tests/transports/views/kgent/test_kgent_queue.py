"""Queue of a conversation: how long dialogues wait for the one before, and the wait that a refusal names."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import BudgetConfig, Limits
from footlights_actors import Stall
from footlights_transports.views.kgent.conversation import READ_PATIENCE
from footlights_transports.views.kgent.pure.messages import ChatMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.responder import COMMIT_PATIENCE
from tests.kit.views.kgent_kit import ASKED, lawful, open_room, payload, saying, talk

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights_transports.views.kgent.conversation import Conversation

SMALL = BudgetConfig(whisper_max=2, dialogue_max=10, deep_max=20)


async def wait_told(conversation: Conversation, sender_wait: int = 0) -> int:
    """The `retry_after_seconds` of a message whose sender has to wait that long."""
    message = ChatMessage("user", ASKED)
    events = lawful([event async for event in conversation.converse(message, sender_wait=lambda: sender_wait)])
    error = payload(events, "error")
    assert error["code"] == "RATE_LIMITED"
    return int(error["retry_after_seconds"])


@pytest.mark.parametrize(("sender_wait", "told"), [(0, 10), (9, 10), (90, 90)])
async def test_the_wait_for_the_queue_includes_the_limits_of_the_sender(
    quiet_clock: MockClock, sender_wait: int, told: int
) -> None:
    config = ChatFluxConfig(max_waiting_dialogues=1, stream_timeout=5.0)
    async with open_room(saying(Stall()), config) as room, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(talk, room.conversation)
            await trio.testing.wait_all_tasks_blocked()
        assert await wait_told(room.conversation, sender_wait) == told


async def test_the_wait_for_the_queue_includes_the_tokens(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(max_waiting_dialogues=1, stream_timeout=5.0, session_tokens=10, session_tokens_seconds=600)
    async with open_room(saying(Stall()), config, budget=SMALL) as room, trio.open_nursery() as nursery:
        assert room.conversation.seconds_until_room() == 1
        nursery.start_soon(talk, room.conversation)
        await trio.testing.wait_all_tasks_blocked()
        assert room.conversation.seconds_until_room() == 120, "all tokens are reserved"
        nursery.start_soon(talk, room.conversation)
        await trio.testing.wait_all_tasks_blocked()
        assert await wait_told(room.conversation) == room.conversation.seconds_until_room() == 120
        await trio.sleep(120)
        assert payload(await talk(room.conversation), "error")["code"] == "STREAM_TIMEOUT", "the wait was the truth"


async def test_the_wait_after_a_full_stage_does_not_include_tokens_given_back(
    quiet_clock: MockClock,
) -> None:
    config = ChatFluxConfig(stream_timeout=5.0, session_tokens=10, session_tokens_seconds=600)
    async with open_room(config=config, budget=SMALL, limits=Limits(max_subscribers=1)) as room:
        async with room.session.subscribe():
            assert await wait_told(room.conversation) == 10
        assert payload(await talk(room.conversation), "message")


async def test_an_unread_dialogue_holds_up_the_next_ones_for_a_limited_time(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(stream_timeout=5.0)
    async with open_room(config=config) as room, trio.open_nursery() as nursery:
        conversation, began = room.conversation, trio.current_time()
        async with aclosing(conversation.dialogue_stream(ASKED)) as held:
            assert (await anext(held)).event_type == "chunk"
            given_up: list[float] = []

            async def wait() -> None:
                error = payload(await talk(conversation), "error")
                assert (error["code"], error["retry_after_seconds"]) == ("RATE_LIMITED", 10)
                given_up.append(trio.current_time() - began)

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(wait)
            await trio.sleep(100)
            assert given_up == [5.0 + COMMIT_PATIENCE + READ_PATIENCE] * 2
            await wait()
            assert given_up[2] == 100, "at once: nobody reads, and nobody knows when somebody will"
