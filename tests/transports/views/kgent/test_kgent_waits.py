"""Whoever is refused is told how long to wait, and who waits as long is refused by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import BudgetConfig, Limits
from footlights_actors import Say, Stall
from footlights_transports.views.kgent.pure.messages import ChatMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from tests.kit.views.kgent_kit import ASKED, lawful, open_room, payload, saying, talk

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights_transports.views.kgent.conversation import Conversation

SMALL = BudgetConfig(whisper_max=2, dialogue_max=10, deep_max=20)


async def wait_told(conversation: Conversation, sender_wait: int = 0) -> int:
    """How long a message is told to wait whose sender has to wait that long."""
    message = ChatMessage("user", ASKED)
    events = lawful([event async for event in conversation.converse(message, sender_wait=lambda: sender_wait)])
    error = payload(events, "error")
    assert error["code"] == "RATE_LIMITED"
    return int(error["retry_after_seconds"])


@pytest.mark.parametrize(("sender_wait", "told"), [(0, 120), (90, 120), (200, 200)])
async def test_who_waits_for_tokens_waits_for_its_sender_too(
    quiet_clock: MockClock, sender_wait: int, told: int
) -> None:
    config = ChatFluxConfig(session_tokens=10, session_tokens_seconds=600)
    async with open_room(saying(Say("word " * 10)), config, budget=SMALL) as room:
        await talk(room.conversation)
        assert await wait_told(room.conversation, sender_wait) == told


@pytest.mark.parametrize(("sender_wait", "told"), [(0, 10), (9, 10), (90, 90)])
async def test_who_waits_for_a_place_waits_for_its_sender_too(
    quiet_clock: MockClock, sender_wait: int, told: int
) -> None:
    config = ChatFluxConfig(max_waiting_dialogues=1, stream_timeout=5.0)
    async with open_room(saying(Stall()), config) as room, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(talk, room.conversation)
            await trio.testing.wait_all_tasks_blocked()
        assert await wait_told(room.conversation, sender_wait) == told


async def test_who_waits_for_a_place_waits_for_the_tokens_too(quiet_clock: MockClock) -> None:
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


async def test_a_message_that_found_no_room_on_the_stage_does_not_wait_for_tokens_that_it_gives_back(
    quiet_clock: MockClock,
) -> None:
    config = ChatFluxConfig(stream_timeout=5.0, session_tokens=10, session_tokens_seconds=600)
    async with open_room(config=config, budget=SMALL, limits=Limits(max_subscribers=1)) as room:
        async with room.session.subscribe():
            assert await wait_told(room.conversation) == 10
        assert payload(await talk(room.conversation), "message")
