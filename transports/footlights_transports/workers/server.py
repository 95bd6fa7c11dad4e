"""Server with workers: the router's process, from start to shutdown, with the interface of `serve`."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights.errors import CommitUnknown
from footlights_transports.access.admission import Admission
from footlights_transports.errors import UnknownWorld
from footlights_transports.http.server import HttpServer
from footlights_transports.server.metrics import Metrics
from footlights_transports.server.reload import reload_at_each
from footlights_transports.server.serve import Opened, listen_at, out_of_groups
from footlights_transports.workers.process import WorkerProcess
from footlights_transports.workers.router import RouterDoor
from footlights_transports.workers.spread import Spread
from footlights_transports.workers.totals import added_up
from footlights_transports.workers.worker import HTTP, WS
from footlights_transports.worlds.world import World, Worlds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Collection, Iterable, Mapping

    from footlights_transports.config.config import Config
    from footlights_transports.config.source import KeyPath
    from footlights_transports.server.gc_policy import HasOpenTurns
    from footlights_transports.server.readiness import Reason
    from footlights_transports.workers.process import Answer


class WorldsOfWorkers(Worlds):
    """The worlds of all workers, as far as the router knows them: it answers probes, and adds up the metrics."""

    views = ()

    def __init__(self, config: Config, workers: list[WorkerProcess]) -> None:
        self.admission = Admission(config.policy)
        self.config = config
        self.renew: Callable[[World], object] | None = None
        self._workers = workers

    async def find(self, name: str, *, may_create: bool) -> World:
        raise UnknownWorld("The router has no world.")

    def opened(self) -> Collection[World]:
        return ()

    async def keep(self) -> None:
        await trio.sleep_forever()

    @property
    def open_turns(self) -> int:
        """Workers that run. Their turns are settled when they have ended."""
        return sum(each.is_running for each in self._workers)

    async def readiness(self, world: World | str) -> tuple[list[Reason], str | None]:
        if self.admission.is_closing:
            await trio.lowlevel.checkpoint()
            return ["draining"], None
        answers = await self._ask_all()
        silent: list[Reason] = [] if all(answers) else ["worker"]
        main = answers[0]
        return silent if main is None else [*silent, *main.reasons], None if main is None else main.rule

    async def rendered(self, metrics: Metrics) -> bytes:
        own = (await super().rendered(metrics)).decode()
        return added_up([own, *(each.metrics for each in await self._ask_all() if each)]).encode()

    async def _ask_all(self) -> list[Answer | None]:
        answers: dict[int, Answer | None] = {}

        async def ask(index: int) -> None:
            answers[index] = await self._workers[index].ask()

        async with trio.open_nursery() as nursery:
            for index in range(len(self._workers)):
                nursery.start_soon(ask, index)
        return [answers[index] for index in range(len(self._workers))]


async def route(
    config: Config,
    announce: Callable[[Opened], None],
    stop: trio.Event,
    watch: Callable[[HasOpenTurns], Awaitable[None]] | None = None,
    beside: object = None,
    reread: Callable[[], Config] | None = None,
    hangups: AsyncIterable[object] | None = None,
    closing: Callable[[int], None] | None = None,
    *,
    options: Mapping[KeyPath, object],
    dev: bool = False,
) -> None:
    """Serve with `config.workers` workers until `stop`, as `serve` does with none. Raises `FootlightsError`.

    The workers read the settings themselves, with the same `options`.
    """
    spread = Spread(config.workers, tuple(config.worlds.names))
    workers: list[WorkerProcess] = []
    worlds = WorldsOfWorkers(config, workers)
    admission = worlds.admission
    arguments = {
        "file": None if config.file is None else str(config.file),
        "options": [[list(path), value] for path, value in options.items()],
        "workers": config.workers,
        "names": spread.names,
        "dev": dev,
    }
    workers += [
        WorkerProcess({**arguments, "index": index}, partial(admission.incidents.refused, "worker_died"))
        for index in range(config.workers)
    ]
    with out_of_groups():
        async with trio.open_nursery() as servers:
            async with trio.open_nursery() as running:
                async with trio.open_nursery() as starting:
                    for each in workers:
                        starting.start_soon(running.start, each.run)
                itself = HttpServer(worlds, Metrics(), requests_per_connection=1)  # the next may be for a worker
                await servers.start(itself.wait_for_connections)
                doors = {kind: RouterDoor(admission, workers, spread, kind, itself) for kind in (WS, HTTP)}
                ws = await listen_at(servers, doors[WS], config, config.ws_port)
                http = await listen_at(servers, doors[HTTP], config, config.http_port)
                announce(Opened(ws.port, http.port, workers[0].epoch))
                if reread is not None and hangups is not None:
                    servers.start_soon(reload_at_each, _passed_on(hangups, workers), reread, worlds)
                await stop.wait()
                ws.stop_accepting()
                http.stop_accepting()
                admission.close_doors()
                if closing is not None:
                    closing(0)
                if watch is not None:
                    servers.start_soon(watch, worlds)
                for each in workers:
                    each.stop()
            servers.cancel_scope.cancel(reason="every worker has ended")
    if any(each.status for each in workers):
        raise CommitUnknown("A worker ended before it knew what became of its last turns. Their ledgers have it.")


async def _passed_on(hangups: AsyncIterable[object], workers: Iterable[WorkerProcess]) -> AsyncGenerator[object]:
    async for each in hangups:
        for worker in workers:
            worker.send_signal(signal.SIGHUP)
        yield each
