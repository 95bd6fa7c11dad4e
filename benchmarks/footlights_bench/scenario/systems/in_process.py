"""In-process system: a stage in this process, without a transport. Its players share the event loop of the harness."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import trio

from footlights import BudgetConfig, SideEffects, Tool, TurnParams, open_stage
from footlights.errors import Detached, SessionClosed
from footlights.events import WarmState
from footlights_actors import Call, Flood, Pause, ScriptedModel, standard_cast
from footlights_bench.scenario.definition import LedgerKind
from footlights_bench.scenario.systems.protocol import Depths
from footlights_transports.cli.models.choice import tavern_with

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights import Cast, InteractionSession, Prompt, Stage
    from footlights.events import JsonValue, StreamEvent
    from footlights.stream.subscription import Subscription
    from footlights.tools.tool import ToolContext
    from footlights_actors import Line
    from footlights_bench.scenario.definition import TurnShape

_TOKEN = " word"
_TOOL = "work"


class StagePlayer:
    """A client of a session in this process. It resubscribes after a cut, and after the session detached it."""

    def __init__(self, session: InteractionSession, stream: Subscription, turn: TurnParams | None = None) -> None:
        self._session = session
        self._turn = turn
        self._stream = stream
        self._reading = trio.CancelScope()
        self._is_cut = False

    async def receive_batch(self) -> Sequence[StreamEvent]:
        while True:
            if self._is_cut:
                await self._come_back()
            try:
                with trio.CancelScope() as self._reading:
                    if batch := await self._stream.receive_batch():
                        return batch
                    raise SessionClosed("The session was closed from elsewhere.")
            except Detached:
                self._is_cut = True

    async def cut(self) -> None:
        await trio.lowlevel.checkpoint()
        self.cut_nowait()

    def cut_nowait(self) -> None:
        self._is_cut = True
        self._reading.cancel(reason="the scenario cuts the connection")

    async def leave(self) -> None:
        await self._stream.__aexit__(None, None, None)

    async def _come_back(self) -> None:
        await self.leave()
        left = self._stream
        self._stream = await self._session.subscribe(left.cursor, left.terminal_seen).__aenter__()
        self._is_cut = False

    async def begin_turn(self, said: str) -> str:
        await trio.lowlevel.checkpoint()
        return self._session.begin_turn(said, self._turn)

    async def cancel(self, turn_id: str) -> None:
        await trio.lowlevel.checkpoint()
        self._session.cancel(turn_id)

    def open_audience(self) -> AbstractAsyncContextManager[StagePlayer]:
        return _open_player(self._session)


@asynccontextmanager
async def _open_player(session: InteractionSession, turn: TurnParams | None = None) -> AsyncGenerator[StagePlayer]:
    player = StagePlayer(session, await session.subscribe().__aenter__(), turn)
    try:
        yield player
    finally:
        await player.leave()


class InProcess:
    """A stage in this process."""

    shares_loop = True

    def __init__(self, stage: Stage, turn: TurnParams | None = None) -> None:
        self.name = "a stage in process"
        self._stage = stage
        self._turn = turn

    @asynccontextmanager
    async def open_player(self) -> AsyncGenerator[StagePlayer]:
        session = self._stage.start()
        async with _open_player(session, self._turn) as player:
            yield player
        await session.close()

    def open_probe(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def depths(self) -> Depths:
        now = self._stage.statistics()
        return Depths(
            events_waiting=now.events_waiting,
            commits_waiting=now.commits_waiting,
            dropped=now.best_effort_dropped + now.bounded_dropped,
        )


@asynccontextmanager
async def open_in_process(turn: TurnShape) -> AsyncGenerator[InProcess]:
    """Open a stage with the turns of a scenario. Raises `FootlightsError` for an unknown model."""
    cast = _scripted_cast(turn) if turn.model is None else tavern_with(turn.model, None)
    is_durable = turn.ledger is LedgerKind.DURABLE
    with TemporaryDirectory() if is_durable else nullcontext() as folder:
        ledger = None if folder is None else Path(folder) / "scenario.ledger"
        async with open_stage(cast, ledger=ledger) as stage:
            yield InProcess(stage, TurnParams(**turn.asked_of_footlights))


def _scripted_cast(turn: TurnShape) -> Cast:
    def script(prompt: Prompt) -> Iterator[Line]:
        if len(prompt.rounds) < turn.tool_calls:
            yield Call(_TOOL)
            return
        for _ in range(turn.tokens):
            if turn.pace:
                yield Pause(turn.pace)
            yield Flood(_TOKEN, 1)

    async def work(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> JsonValue:
        await trio.sleep(turn.tool_seconds)
        return True

    model = ScriptedModel(
        script, load_seconds=turn.load_seconds, warm_state=WarmState.COLD if turn.load_seconds else WarmState.HOT
    )
    tools = [Tool(name=_TOOL, run=work, cancel_safe=True, side_effects=SideEffects.NONE)] if turn.tool_calls else []
    return standard_cast(model, tools=tools, budget=BudgetConfig(dialogue_max=turn.tokens))
