"""Many clients at once, some of them rude. Each has a streaming turn; of ten, one reads nothing, one vanishes without
a word, one cancels.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio
import trio.testing

from footlights import BudgetConfig, EventType, open_stage
from footlights_actors import Flood, Line, Say, ScriptedModel, Stall, standard_cast
from footlights_transports import connect
from footlights_transports.access.session_access import SessionAccess
from tests.kit.cutting_proxy import open_proxy
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from footlights import OutboxStatistics, Stage, StreamEvent
    from footlights_transports import ClientSession, ClientStream

SPEECH = " ".join(["word"] * 60)
FLOOD = "More than a socket can hold."
ENDLESS = "Until you are cut short."
"""However late a cancel comes in a crowd, it is not too late."""
PACE = 0.005
FLOODED = (0, 10, 20)
"""Of those that read nothing, the ones for whom there is more than fits on the way."""
STALLED, VANISHING, CANCELING = range(3)


class Crowd:
    """What becomes of so many clients."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._absent = clients
        self._at_work = sum(number % 10 != STALLED for number in range(clients))
        self._entrance = trio.CapacityLimiter(64)
        self._all_here = trio.Event()
        self._all_done = trio.Event()
        self.told: dict[int, list[StreamEvent]] = {}
        """What each client got that wanted to stay to the end."""
        self.canceled: list[str] = []
        """Sessions in which a cancel won."""
        self.accepted_after: list[float] = []
        """Seconds from the wish to begin a turn until it was accepted."""
        self.kept: list[OutboxStatistics] = []
        """What the server kept for those that read nothing, when all others were done."""

    async def gather(self) -> None:
        model = ScriptedModel(lambda it: _script(it.user), pace=PACE)
        cast = standard_cast(model, budget=BudgetConfig(dialogue_max=10_000))
        async with open_stage(cast) as stage, trio.open_nursery() as nursery:
            listening = await nursery.start(partial(serve_ws, SessionAccess(stage), host="127.0.0.1", port=0))
            async with trio.open_nursery() as everybody:
                for number in range(self._clients):
                    everybody.start_soon(self._come, number, stage, listening.port)
            while stage.statistics().subscribers:  # that somebody is gone is told by the network, and takes its time
                await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()

    async def _come(self, number: int, stage: Stage, port: int) -> None:
        async with AsyncExitStack() as stack:
            # Whoever is to vanish comes through somebody who can make it so.
            proxy = await stack.enter_async_context(open_proxy(port)) if number % 10 == VANISHING else None
            address = f"ws://127.0.0.1:{port if proxy is None else proxy.port}"
            async with self._entrance:
                client = await stack.enter_async_context(connect(address, dial_timeout=60))
                session = await client.start()
            async with session.subscribe() as stream:
                await self._wait_for_everybody()
                began = trio.current_time()
                turn_id = await session.begin_turn(_input(number))
                self.accepted_after.append(trio.current_time() - began)
                if number % 10 == STALLED:
                    await self._all_done.wait()
                    self.kept += stage.session(session.session_id).statistics().subscribers
                    return
                if proxy is None:
                    self.told[number] = await self._listen(number, session, stream, turn_id)
                else:
                    await anext(stream)
                    proxy.cut_all()
        self._at_work -= 1
        if not self._at_work:
            self._all_done.set()

    async def _listen(
        self, number: int, session: ClientSession, stream: ClientStream, turn_id: str
    ) -> list[StreamEvent]:
        told = [await anext(stream)]
        while told[-1].event_type is not EventType.TOKEN_DELTA:
            told.append(await anext(stream))
        if number % 10 == CANCELING and await session.cancel(turn_id):
            self.canceled.append(session.session_id)
        return told + [event async for event in stream.until_commit(turn_id)]

    async def _wait_for_everybody(self) -> None:
        self._absent -= 1
        if not self._absent:
            self._all_here.set()
        await self._all_here.wait()


def _input(number: int) -> str:
    if number in FLOODED:
        return FLOOD
    return ENDLESS if number % 10 == CANCELING else "Go on."


def _script(said: str) -> list[Line]:
    if said == FLOOD:
        return [Flood("word ", 10_000)]
    return [Say(SPEECH), Stall()] if said == ENDLESS else [Say(SPEECH)]


def open_sockets() -> int:
    """Of this process, where the system tells."""
    folder = Path("/proc/self/fd")
    files = list(folder.iterdir()) if folder.exists() else []
    return sum("socket:" in str(file.readlink()) for file in files if file.is_symlink())
