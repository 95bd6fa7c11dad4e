"""Sender: a refusal names one wait, after which no limit refuses the message."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import BudgetConfig, open_stage
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.errors import RateLimited
from footlights_transports.views.kgent.gateway import KgentGateway
from footlights_transports.views.kgent.pure.messages import ChatMessage, InvalidMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.wire import PerturbQuery

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights_transports.views.kgent.sender import Sender

BUDGET = BudgetConfig(whisper_max=5, dialogue_max=5, deep_max=5)
"""Each answer uses 5 tokens, all that the session has."""


class Client:
    """A client that reports the wait of each message."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self._said = 0

    async def say(self, name: str | None = None) -> int:
        """Send a message as a connection does; returns `retry_after_seconds`, 0 if it is answered."""
        self._said += 1
        message = ChatMessage("user", "Tell me all of it.", correlation_id=name or str(self._said))
        try:
            self.sender.take_frame()
            dialogue = self.sender.perturb(message)
        except RateLimited as error:
            return error.retry_after
        await dialogue.over.wait()
        return max(int(str(each.payload.get("retry_after_seconds", 0))) for each in dialogue.events)


@asynccontextmanager
async def open_client(
    config: ChatFluxConfig, limits: WireLimits | None = None, model: ScriptedModel | None = None
) -> AsyncGenerator[Client]:
    cast = standard_cast(model or ScriptedModel(lambda _: [Say("one two three four five")]), budget=BUDGET)
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        gateway = KgentGateway(SessionAccess(stage, AccessPolicy(limits=limits)), config, budget=BUDGET)
        await nursery.start(gateway.keep)
        yield Client(gateway.enter(User(), "default", PerturbQuery()))
        nursery.cancel_scope.cancel()


@pytest.mark.shows("gateway-61")
@pytest.mark.parametrize(
    ("tokens_seconds", "burst", "told"),
    [
        pytest.param(4, 2, 60, id="refused for its tokens, and the messages take longer"),
        pytest.param(600, 2, 600, id="refused for its tokens, and they take longer"),
        pytest.param(600, 1, 600, id="refused for its messages, and the tokens take longer"),
        pytest.param(4, 1, 60, id="refused for its messages, and they take longer"),
    ],
)
async def test_after_the_named_wait_no_limit_refuses_the_message(
    quiet_clock: MockClock, tokens_seconds: float, burst: int, told: int
) -> None:
    config = ChatFluxConfig(
        session_tokens=5, session_tokens_seconds=tokens_seconds, messages_per_minute=1, message_burst=burst
    )
    async with open_client(config) as client:
        assert await client.say() == 0
        assert await client.say() == told
        await trio.sleep(told - 1)
        assert client.sender.seconds_until_next() == 1
        await trio.sleep(1)
        assert await client.say() == 0


@pytest.mark.parametrize("is_users", [False, True])
@pytest.mark.parametrize(
    ("per_second", "burst", "told"),
    [
        pytest.param(1 / 700, 1, 700, id="refused for its frames, which take longer"),
        pytest.param(1 / 50, 1, 600, id="refused for its frames, and the tokens take longer"),
        pytest.param(1 / 700, 2, 700, id="refused for its tokens, and the frames take longer"),
    ],
)
async def test_the_named_wait_includes_the_wire_limits(
    quiet_clock: MockClock, is_users: bool, per_second: float, burst: int, told: int
) -> None:
    wire = WireLimits(commands_per_second=per_second, command_burst=burst)
    if is_users:
        wire = WireLimits(user_commands_per_second=per_second, user_command_burst=burst)
    async with open_client(ChatFluxConfig(session_tokens=5, session_tokens_seconds=600), wire) as client:
        assert await client.say() == 0
        assert await client.say() == told
        await trio.sleep(told)
        assert await client.say() == 0


async def test_the_named_wait_includes_the_queue(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(message_burst=2, messages_per_minute=60, max_waiting_dialogues=1, stream_timeout=40.0)
    async with (
        open_client(config, model=ScriptedModel(lambda _: [Stall()])) as client,
        trio.open_nursery() as nursery,
    ):
        for _ in range(2):
            nursery.start_soon(client.say)
            await trio.testing.wait_all_tasks_blocked()
        assert await client.say() == 45
        nursery.cancel_scope.cancel()


async def test_a_retry_of_a_failed_dialogue_needs_a_new_correlation_id(
    quiet_clock: MockClock,
) -> None:
    async with open_client(ChatFluxConfig(session_tokens=5, session_tokens_seconds=600)) as client:
        assert await client.say() == 0
        observer = client.sender.room.observe({})
        wait = await client.say("refused")
        assert b'"done"' in (await observer.next_batch())[-1], "nothing may come behind that"
        await trio.sleep(wait)
        with pytest.raises(InvalidMessage, match="takes a new one"):
            await client.say("refused")
        assert await client.say("again") == 0


async def test_a_retry_of_a_refused_message_may_keep_its_correlation_id(
    quiet_clock: MockClock,
) -> None:
    async with open_client(ChatFluxConfig(message_burst=1, messages_per_minute=1)) as client:
        assert await client.say() == 0
        await trio.sleep(await client.say("refused"))
        assert await client.say("refused") == 0


async def test_without_a_conversation_only_the_limits_of_the_sender_count(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(session_tokens=5, session_tokens_seconds=600)
    async with open_client(config, WireLimits(commands_per_second=1 / 50, command_burst=1)) as client:
        assert await client.say() == 0
        client.sender.chat.conversations.clear()
        assert await client.say() == 50
