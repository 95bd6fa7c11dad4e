"""A dialogue that nobody reads holds the next ones up for so long and no longer."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import Busy
from footlights_actors import Stall
from footlights_transports.views.kgent.conversation import READ_PATIENCE, ConversationState
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.responder import COMMIT_PATIENCE
from tests.kit.views.kgent_kit import ASKED, open_room, payload, saying, talk

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_a_dialogue_that_nobody_reads_holds_the_next_ones_up_for_so_long(quiet_clock: MockClock) -> None:
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
            with pytest.raises(Busy):
                await conversation.drain()
            assert conversation.state is ConversationState.DRAINING
        await conversation.drain()
        assert [conversation.state] == [ConversationState.STOPPED]


async def test_draining_waits_for_as_long_as_dialogues_may_take_and_no_longer(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(stream_timeout=5.0)
    async with open_room(saying(Stall()), config) as room, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(talk, room.conversation)
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        await room.conversation.drain()
        assert trio.current_time() - began == 15
    async with open_room(config=config) as room, aclosing(room.conversation.dialogue_stream(ASKED)) as held:
        await anext(held)
        began = trio.current_time()
        with pytest.raises(Busy):
            await room.conversation.drain()
        assert trio.current_time() - began == 5 + COMMIT_PATIENCE + READ_PATIENCE
