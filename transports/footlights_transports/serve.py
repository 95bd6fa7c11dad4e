"""`footlights serve`: one stage, and everybody who can reach it by WebSocket or HTTP.

Told to stop, it takes nobody new and begins nothing new, lets turns finish for a while, interrupts the others, commits
all of them, and closes when everybody was told or their time is up. Whoever missed something may resume after a
restart on the same ledger.
"""

from __future__ import annotations

import errno
import signal
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from footlights import FootlightsError, open_stage
from footlights.authority import SqliteLedger
from footlights.failures import leaves
from footlights_transports.desk import FrontDesk
from footlights_transports.http_server import serve_http
from footlights_transports.metrics import Metrics
from footlights_transports.ws_server import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Generator

    from footlights import Stage
    from footlights_transports.config import Config
    from footlights_transports.listening import Listening

Server: TypeAlias = "Callable[..., Awaitable[None]]"
_GLANCE = 0.05
"""How often a closing server looks whether its turns are done."""


class CannotServe(FootlightsError):
    """Something outside is in the way: an address that is taken, a file that cannot be written."""

    code = "cannot_serve"


@frozen
class Opened:
    """What there is to say of a server that can be reached."""

    ws_port: int
    http_port: int
    epoch: int
    """How many times its ledger was opened."""


def serve_here(config: Config, announce: Callable[[Opened], None]) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends the process at once. Raises `FootlightsError`."""
    with _out_of_groups():
        trio.run(_serve_until_signal, config, announce)


async def _serve_until_signal(config: Config, announce: Callable[[Opened], None]) -> None:
    stop = trio.Event()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_obey, signals, stop)
            try:
                await serve(config, announce, stop)
            finally:
                nursery.cancel_scope.cancel(reason="nothing is served any more")


async def _obey(signals: AsyncIterable[int], stop: trio.Event) -> None:
    async for _ in signals:
        # From now on the system ends the process itself: at once, whatever the loop is doing.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        stop.set()


async def serve(config: Config, announce: Callable[[Opened], None], stop: trio.Event) -> None:
    """Serve until `stop`. `announce` is called once everything can be reached. Raises `FootlightsError`."""
    with _out_of_groups():
        async with trio.open_nursery() as servers:
            await _perform(config, servers, announce, stop)
            # The stage is closed: all that there is to tell is waiting for its clients.
            servers.cancel_scope.cancel(reason="the server goes away")


@contextmanager
def _out_of_groups() -> Generator[None]:
    """A single error of ours leaves as it is, and not in the groups that nurseries make."""
    try:
        yield
    except BaseExceptionGroup as errors:
        members = list(leaves(errors))
        if len(members) == 1 and isinstance(members[0], FootlightsError):
            raise members[0] from None
        raise


async def _perform(config: Config, servers: trio.Nursery, announce: Callable[[Opened], None], stop: trio.Event) -> None:
    metrics = Metrics()
    async with (
        SqliteLedger(config.ledger) as ledger,
        open_stage(
            config.cast,
            ledger=metrics.watching(ledger),
            limits=config.limits,
            trace=config.trace,
            observe=metrics.turn_settled,
        ) as stage,
    ):
        desk = FrontDesk(stage, config.gate, watch=metrics)
        ws = await _listen(servers, partial(serve_ws, desk), config, config.ws_port)
        http = await _listen(servers, partial(serve_http, desk, metrics=metrics), config, config.http_port)
        announce(Opened(ws.port, http.port, stage.epoch))
        await stop.wait()
        ws.stop_accepting()
        http.stop_accepting()
        desk.close_doors()
        with trio.move_on_after(config.grace):
            await _wait_settled(stage)


async def _listen(servers: trio.Nursery, server: Server, config: Config, port: int) -> Listening:
    try:
        listening: Listening = await servers.start(partial(server, host=config.host, port=port, tls=config.tls))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(f"Port {port} of {config.host} is in use. Port 0 is any that is free.") from None
        raise CannotServe(f"Nothing can listen on {config.host}, port {port}: {error.strerror}.") from None
    return listening


async def _wait_settled(stage: Stage) -> None:
    while stage.statistics().open_turns:  # noqa: ASYNC110 - a stage has no event for that
        await trio.sleep(_GLANCE)
