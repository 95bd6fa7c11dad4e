"""Faults: models, tools, subscribers and a ledger that fail on cue.

Each has one fault, at a chosen moment that is the same in every run. The models wrap a working model. The tools declare
no side effects; add a declaration with `attrs.evolve(tool, cancel_safe=True, side_effects=SideEffects.NONE)`.
"""

from __future__ import annotations

import time
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from footlights.errors import LedgerUnavailable
from footlights.events import WarmState
from footlights.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Container, Mapping, Sequence

    from footlights.authority.ledger.protocol import Ledger, Opening, ToolRecord, TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World
    from footlights.events import JsonValue, StreamEvent
    from footlights.models.model import Model, ModelTraits, Output, Prompt
    from footlights.session.session import InteractionSession
    from footlights.stream.subscription import Subscription
    from footlights.tools.tool import ToolContext


class InjectedFault(Exception):
    """Raised by a fault unless another error was given."""


# -- models


class _Before:
    """A model that forwards everything to another: the base of those that do not."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner

    @property
    def model_id(self) -> str:
        return self._inner.model_id

    @property
    def traits(self) -> ModelTraits:
        return self._inner.traits

    @property
    def warm_state(self) -> WarmState:
        return self._inner.warm_state

    async def load(self, report: Callable[[float], None]) -> None:
        await self._inner.load(report)

    async def unload(self) -> None:
        await self._inner.unload()

    def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        return self._inner.generate(prompt)


class _Breaking(_Before):
    def __init__(self, inner: Model, after_tokens: int, happen: Callable[[], Awaitable[None]]) -> None:
        super().__init__(inner)
        self._after_tokens = after_tokens
        self._happen = happen

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        left = self._after_tokens
        async with aclosing(self._inner.generate(prompt)) as output:
            while left and (item := await anext(output, None)) is not None:
                left -= isinstance(item, str)
                yield item
        await self._happen()


class _Flooding(_Before):
    def __init__(self, inner: Model, tokens: int, token: str) -> None:
        super().__init__(inner)
        self._tokens = tokens
        self._token = token

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        for _ in range(self._tokens):
            yield self._token
        async with aclosing(self._inner.generate(prompt)) as output:
            async for item in output:
                yield item


class _Unloadable(_Before):
    def __init__(self, inner: Model, happen: Callable[[], Awaitable[None]]) -> None:
        super().__init__(inner)
        self._happen = happen

    @property
    def warm_state(self) -> WarmState:
        return WarmState.COLD

    async def load(self, report: Callable[[float], None]) -> None:
        await self._happen()


def failing_model(inner: Model, *, after_tokens: int, error: BaseException | None = None) -> Model:
    """Raises in the middle of the output of `inner`, or at its end if that comes first."""
    return _Breaking(inner, after_tokens, _raising(error))


def stalling_model(inner: Model, *, after_tokens: int) -> Model:
    """Hangs in the middle of the output of `inner`, or at its end."""
    return _Breaking(inner, after_tokens, trio.sleep_forever)


def flooding_model(inner: Model, *, tokens: int, token: str = "blah ") -> Model:
    """Yields a token repeatedly without ever waiting, then the output of `inner`."""
    return _Flooding(inner, tokens, token)


def failing_load(inner: Model, *, error: BaseException | None = None) -> Model:
    """Is cold, and raises instead of loading."""
    return _Unloadable(inner, _raising(error))


def stalling_load(inner: Model) -> Model:
    """Is cold, and never finishes loading."""
    return _Unloadable(inner, trio.sleep_forever)


def _raising(error: BaseException | None) -> Callable[[], Awaitable[None]]:
    async def happen() -> None:
        await trio.lowlevel.checkpoint()
        raise InjectedFault("an injected fault") if error is None else error

    return happen


# -- tools


def raising_tool(name: str = "raising", *, error: BaseException | None = None) -> Tool:
    """Raises. A `ToolError` is a result for the model; any other exception is a crash."""
    return _tool(name, _raising(error))


def hanging_tool(name: str = "hanging") -> Tool:
    """Never returns. It would react to a cancel if it were `cancel_safe`."""
    return _tool(name, trio.sleep_forever)


def slow_tool(seconds: float, name: str = "slow") -> Tool:
    """Sleeps, and returns true."""
    return _tool(name, partial(trio.sleep, seconds))


def deaf_tool(seconds: float, name: str = "deaf") -> Tool:
    """Sleeps in a shielded scope, and returns true: it ignores cancels, as code in a thread does."""

    async def happen() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)

    return _tool(name, happen)


def blocking_tool(seconds: float = 0.002, name: str = "blocking") -> Tool:
    """Blocks a worker thread for real seconds, where no cancel reaches it, and returns true."""

    async def happen() -> None:
        await trio.to_thread.run_sync(time.sleep, seconds)

    return _tool(name, happen)


def _tool(name: str, happen: Callable[[], Awaitable[None]]) -> Tool:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await happen()
        return True

    return Tool(name=name, run=run)


# -- subscribers


@asynccontextmanager
async def stalled_subscriber(session: InteractionSession) -> AsyncGenerator[Subscription]:
    """A subscriber that attaches and takes nothing. Its stream is yielded for inspection, not for reading."""
    async with session.subscribe() as stream:
        yield stream


async def vanishing_subscriber(
    session: InteractionSession,
    after_events: int,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> list[StreamEvent]:
    """Take this many events, leave, and return them. The subscriber is attached when the task has started."""
    async with session.subscribe() as stream:
        task_status.started()
        return [await anext(stream) for _ in range(after_events)]


# -- the ledger


class FlakyLedger:
    """A ledger whose writes can fail, in front of a working one.

    While `available` is false, and for the appends in `failing_appends` (counting from 1), it raises
    `LedgerUnavailable` and writes nothing. Every write waits `delay` seconds first.
    """

    def __init__(self, inner: Ledger, *, failing_appends: Container[int] = (), delay: float = 0.0) -> None:
        self.available = True
        self.delay = delay
        self.appends = 0
        self._inner = inner
        self._failing_appends = failing_appends

    async def begin_epoch(self, genesis: World) -> Opening:
        return await self._inner.begin_epoch(genesis)

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        return await self._inner.last_digests(session_ids)

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        self.appends += 1
        fails = self.appends in self._failing_appends
        await self._prepare_write(fails=fails)
        await self._inner.append(records, world, requests)

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        return await self._inner.find(session_id, turn_id)

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        return await self._inner.commits_after(session_id, turn_id, limit)

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        return await self._inner.latest(session_id, limit)

    async def position_of(self, commit_id: str | None) -> int | None:
        return await self._inner.position_of(commit_id)

    async def commits_from(self, position: int, limit: int) -> Sequence[CommitRecord]:
        return await self._inner.commits_from(position, limit)

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        return await self._inner.find_request(session_id, request_id)

    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        await self._prepare_write()
        return await self._inner.begin_tool(key, request)

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        await self._prepare_write()
        await self._inner.complete_tool(key, outcome)

    async def release_tool(self, key: str) -> None:
        await self._prepare_write()
        await self._inner.release_tool(key)

    async def _prepare_write(self, *, fails: bool = False) -> None:
        await trio.sleep(self.delay)
        if fails or not self.available:
            raise LedgerUnavailable("The ledger was made unavailable by a test.")
