"""A dialogue that nobody reads holds the next ones up for so long and no longer."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import Busy
from footlights_actors import Stall
from footlights_transports.views.kgent.flux import READ_PATIENCE
from footlights_transports.views.kgent.pure.flux_state import FluxState
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.soul import COMMIT_PATIENCE
from tests.kit.views.kgent_kit import ASKED, open_room, payload, saying, talk

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_a_dialogue_that_nobody_reads_holds_the_next_ones_up_for_so_long(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(stream_timeout=5.0)
    async with open_room(config=config) as room, trio.open_nursery() as nursery:
        flux, began = room.flux, trio.current_time()
        async with aclosing(flux.dialogue_stream(ASKED)) as held:
            assert (await anext(held)).event_type == "chunk"
            given_up: list[float] = []

            async def wait() -> None:
                error = payload(await talk(flux), "error")
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
                await flux.drain()
            assert flux.state is FluxState.DRAINING
        await flux.drain()
        assert [flux.state] == [FluxState.STOPPED]


async def test_draining_waits_for_as_long_as_dialogues_may_take_and_no_longer(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(stream_timeout=5.0)
    async with open_room(saying(Stall()), config) as room, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(talk, room.flux)
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        await room.flux.drain()
        assert trio.current_time() - began == 15
    async with open_room(config=config) as room, aclosing(room.flux.dialogue_stream(ASKED)) as held:
        await anext(held)
        began = trio.current_time()
        with pytest.raises(Busy):
            await room.flux.drain()
        assert trio.current_time() - began == 5 + COMMIT_PATIENCE + READ_PATIENCE
