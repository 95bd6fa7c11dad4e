"""Requests that a kept connection lost: sent once more on a new connection. Nothing else is ever sent twice."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve

from footlights.errors import ModelError, ModelUnreachable, StreamError
from footlights.models.model import Prompt
from tests.kit.models import anthropic_wire as messages
from tests.kit.models import openai_wire as completions
from tests.kit.models.wire_server import (
    KEY,
    SAID,
    SECRETS,
    Answer,
    Cut,
    Hold,
    Raw,
    Reset,
    Stall,
    ask,
    let_time_pass_after,
    open_wire_server,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from footlights.models.model import Model
    from tests.kit.models.wire_server import Step, WireServer


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


both = pytest.mark.parametrize(
    ("driver", "whole"),
    [(completions.model_at, Answer(completions.WHOLE)), (messages.model_at, Answer(messages.WHOLE))],
)
LOST = [Answer((Cut(),), silent=True), Answer((Reset(),), silent=True)]
"""A server that closes an idle connection, as seen by a request that was already sent."""


async def ask_first(model: Model) -> None:
    """A round that leaves a connection behind."""
    async with aclosing(model.generate(Prompt(SAID))) as stream:
        assert "A" in [item async for item in stream]


@both
@pytest.mark.parametrize("lost", LOST)
async def test_a_request_that_a_kept_connection_lost_is_sent_once_more_on_a_new_one(
    driver: Callable[[WireServer], Model], whole: Answer, lost: Answer
) -> None:
    async with open_wire_server(whole, lost, whole) as server:
        model = driver(server)
        await ask_first(model)
        outputs, error = await ask(model)
        assert (error, outputs[:2]) == (None, ["A", " room?"])
        assert [request.connection for request in server.requests] == [1, 1, 2]
        assert server.requests[1] == server.requests[2].over(1)


@both
@pytest.mark.parametrize("lost", LOST)
async def test_it_is_not_sent_a_third_time(driver: Callable[[WireServer], Model], whole: Answer, lost: Answer) -> None:
    async with open_wire_server(whole, lost, lost) as server:
        model = driver(server)
        await ask_first(model)
        outputs, error = await ask(model)
        assert (outputs, type(error), "did not answer" in str(error)) == ([], ModelUnreachable, True)
        assert [request.connection for request in server.requests] == [1, 1, 2]
        assert not [secret for secret in SECRETS if secret in quoted(error)]


@both
async def test_other_kept_connections_are_not_tried_for_it(
    driver: Callable[[WireServer], Model], whole: Answer
) -> None:
    """They may be as stale as the first."""
    asked = trio.Event()
    held = evolve(whole, steps=(Hold(asked), *whole.steps))
    async with open_wire_server(held, held, LOST[0], whole) as server:
        model = driver(server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_first, model)
            nursery.start_soon(ask_first, model)
            while len(server.requests) < 2:
                await trio.lowlevel.checkpoint()
            asked.set()
        assert server.connections == 2
        assert (await ask(model))[1] is None
        assert server.requests[-1].connection == 3


@both
@pytest.mark.parametrize("lost", LOST)
async def test_a_request_that_a_new_connection_lost_is_not_sent_again(
    driver: Callable[[WireServer], Model], whole: Answer, lost: Answer
) -> None:
    async with open_wire_server(lost, whole) as server:
        outputs, error = await ask(driver(server))
        assert (outputs, type(error), "did not answer" in str(error)) == ([], ModelUnreachable, True)
        assert len(server.requests) == 1


BEGUN: list[tuple[Sequence[Step], bool, type[ModelError]]] = [
    ((Raw(b"H"), Cut()), True, ModelUnreachable),
    ((Raw(b"H"), Reset()), True, ModelUnreachable),
    ((Raw(b"HTTP/1.1 100 Continue\r\n\r\n"), Cut()), True, ModelUnreachable),
    ((Cut(),), False, StreamError),
]


@both
@pytest.mark.parametrize(("steps", "silent", "kind"), BEGUN)
async def test_a_request_whose_answer_began_is_not_sent_again(
    driver: Callable[[WireServer], Model], whole: Answer, steps: Sequence[Step], silent: bool, kind: type[ModelError]
) -> None:
    async with open_wire_server(whole, Answer(steps, silent=silent), whole) as server:
        model = driver(server)
        await ask_first(model)
        outputs, error = await ask(model)
        assert (outputs, type(error)) == ([], kind)
        assert len(server.requests) == 2


@both
async def test_a_request_that_a_kept_connection_leaves_waiting_is_not_sent_again(
    driver: Callable[[WireServer], Model], whole: Answer, mock_clock: trio.testing.MockClock
) -> None:
    async with (
        open_wire_server(whole, Answer((Stall(),), silent=True), whole) as server,
        trio.open_nursery() as nursery,
    ):
        model = driver(server)
        await ask_first(model)
        nursery.start_soon(let_time_pass_after, server.stalled, mock_clock)
        outputs, error = await ask(model)
        nursery.cancel_scope.cancel()
        assert (outputs, type(error)) == ([], TimeoutError)
        assert len(server.requests) == 2
