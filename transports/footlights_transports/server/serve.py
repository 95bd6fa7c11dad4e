"""Server process: its worlds behind a WebSocket and an HTTP server, from start to shutdown.

At SIGTERM it accepts no connections, sessions or turns, gives open turns a grace period, interrupts those that are
left, commits all of them, and closes when clients have read everything or their time is up. Clients that missed
something may resume after a restart on the same ledger. If the shutdown hangs, the process is ended soon after that
time.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeAlias

import trio
from attrs import frozen

from footlights import CommitUnknown, FootlightsError
from footlights.authority.ledger.names import open_node
from footlights.failures import leaves
from footlights_transports.http.server import HttpServer
from footlights_transports.server.gc_policy import collect_gently
from footlights_transports.server.metrics import Metrics
from footlights_transports.server.reload import reload_at_each
from footlights_transports.websocket.server import WsServer
from footlights_transports.worlds.hosted import HostedWorlds

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Generator
    from types import FrameType

    from footlights_transports.config.config import Config
    from footlights_transports.server.acceptor import Acceptor
    from footlights_transports.server.gc_policy import HasOpenTurns
    from footlights_transports.server.listening import Listening

Listen: TypeAlias = "Callable[[trio.Nursery, Config, HostedWorlds, Metrics], Awaitable[tuple[Listening, Listening]]]"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SWITCH_INTERVAL = 0.0002
"""Seconds after which a thread that computes, such as that of the rules, lets the event loop go on."""
_GLANCE = 0.05
"""Seconds between two checks for open turns during shutdown."""
SPARE = 5.0
"""Seconds that a shutdown may take besides its known waits, before the process is ended."""
_LAST_WORDS = 1.0
"""Seconds for logging that the process is ended."""

log = logging.getLogger("footlights.serve")


class Server(Protocol):
    """`serve`, or what takes its place."""

    def __call__(
        self,
        config: Config,
        announce: Callable[[Opened], None],
        stop: trio.Event,
        watch: Callable[[HasOpenTurns], Awaitable[None]] | None = None,
        beside: Callable[[HostedWorlds], Awaitable[None]] | None = None,
        reread: Callable[[], Config] | None = None,
        hangups: AsyncIterable[object] | None = None,
        closing: Callable[[int], None] | None = None,
    ) -> Awaitable[None]: ...


class CannotServe(FootlightsError):
    """The environment prevents serving: an address is in use, a file cannot be written."""

    code = "cannot_serve"


@frozen
class Opened:
    """The ports and the epoch of a server that accepts connections."""

    ws_port: int
    http_port: int
    epoch: int
    """How many times the ledger of the main world was opened."""


def serve_here(
    config: Config,
    announce: Callable[[Opened], None],
    reread: Callable[[], Config] | None = None,
    closing: Callable[[int], None] | None = None,
    *,
    server: Server | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends the process at once. Raises `FootlightsError`.

    `closing` is called at the first one, with the number of open turns. At SIGHUP the settings are read again with
    `reread`, if given. If shutdown takes too long, the process is ended: with 0 if every turn is settled, else with 1.
    `server` is `serve`, or has its interface.
    """
    if config.worlds.names or config.worlds.max_on_demand:
        _allow_open_files()
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        with _LastResort(_time_to_end(config)) as last_resort:
            trio.run(_serve_until_signal, config, announce, reread, closing, last_resort, server or serve)
    finally:
        sys.setswitchinterval(before)


def _allow_open_files() -> None:
    """Allow this process as many open files as it may have: each world takes four, and a thousand are the default."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError, ValueError):  # macOS has no limit that could be set
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _time_to_end(config: Config) -> float:
    # A stage waits for its commits, and then as long again for its traces.
    return config.grace + config.limits.shutdown_deadline * (1 if config.trace is None else 2) + SPARE


async def _serve_until_signal(
    config: Config,
    announce: Callable[[Opened], None],
    reread: Callable[[], Config] | None,
    closing: Callable[[int], None] | None,
    last_resort: _LastResort,
    server: Server,
) -> None:
    stop, token = trio.Event(), trio.lowlevel.current_trio_token()
    # A background job of a script ignores SIGINT: a Ctrl-C at its terminal is not meant for the server.
    signals = _SIGNALS if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN else (signal.SIGTERM,)

    def obey(_number: int, _frame: FrameType | None) -> None:
        # At the next signal the system ends the process at once, whatever the loop does.
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        last_resort.count_down()
        token.run_sync_soon(stop.set)

    before = {number: signal.signal(number, obey) for number in signals}
    beside = collect_gently if config.gentle_gc else None
    serving = partial(server, config, announce, stop, watch=last_resort.watch, beside=beside, closing=closing)
    try:
        if reread is None or not hasattr(signal, "SIGHUP"):
            await serving()
        else:
            with trio.open_signal_receiver(signal.SIGHUP) as hangups:
                await serving(reread=reread, hangups=hangups)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _LastResort:
    """Ends the process if the shutdown takes too long. In a thread, because the event loop may hang."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._told: SimpleQueue[None] = SimpleQueue()
        self._is_settled = False
        # Not started in the signal handler, which may run while the main thread holds a lock of `threading`.
        self._thread = threading.Thread(target=self._run, name="footlights last resort", daemon=True)

    def __enter__(self) -> _LastResort:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._told.put(None)
        self._told.put(None)
        self._thread.join()
        if kind is None and not self._is_settled:
            raise CommitUnknown("The server ended before it knew what became of the last turns. The ledger has it.")

    def count_down(self) -> None:
        """Start the timeout now. A signal handler may call this."""
        self._told.put(None)

    async def watch(self, worlds: HasOpenTurns) -> None:
        """Note whether every turn is settled, until cancelled."""
        while True:
            try:
                await trio.sleep(_GLANCE)
            finally:  # also at the end, when the last turns may be settled
                self._is_settled = not worlds.open_turns

    def _run(self) -> None:
        self._told.get()
        try:
            self._told.get(timeout=self._seconds)
        except Empty:
            turns = "every turn is settled" if self._is_settled else "turns are left unsettled"
            line = "The server did not shut down in %g seconds and is ended: %s."
            last_words = threading.Thread(target=log.error, args=(line, self._seconds, turns), daemon=True)
            last_words.start()
            last_words.join(_LAST_WORDS)  # writing the log may be what hangs
            os._exit(0 if self._is_settled else 1)


async def listen_at(servers: trio.Nursery, server: Acceptor, config: Config, port: int) -> Listening:
    """Accept connections at a port. Raises `CannotServe`."""
    try:
        listening: Listening = await servers.start(server.listen, config.host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            in_use = f"Port {port} of {config.host} is in use."
            raise CannotServe(f"{in_use} Choose another with --ws-port or --http-port: 0 is any free one.") from None
        raise CannotServe(f"Cannot listen on {config.host}, port {port}: {error.strerror}.") from None
    return listening


async def listen_at_ports(
    servers: trio.Nursery, config: Config, worlds: HostedWorlds, metrics: Metrics
) -> tuple[Listening, Listening]:
    """Accept connections at the ports of the settings."""
    ws = await listen_at(servers, WsServer(worlds, tls=config.tls), config, config.ws_port)
    http = await listen_at(servers, HttpServer(worlds, metrics, tls=config.tls), config, config.http_port)
    return ws, http


async def serve(
    config: Config,
    announce: Callable[[Opened], None],
    stop: trio.Event,
    watch: Callable[[HostedWorlds], Awaitable[None]] | None = None,
    beside: Callable[[HostedWorlds], Awaitable[None]] | None = None,
    reread: Callable[[], Config] | None = None,
    hangups: AsyncIterable[object] | None = None,
    closing: Callable[[int], None] | None = None,
    *,
    listen: Listen = listen_at_ports,
    owns: Callable[[str], bool] = lambda _: True,
) -> None:
    """Serve until `stop`. `announce` is called when both servers accept connections. Raises `FootlightsError`.

    `beside` runs from then on, and `watch` from `stop` on, both until the end. `closing` is called at `stop`, with the
    number of open turns. At each item of `hangups`, the settings are read again with `reread`. `listen` says where
    connections come from, and `owns` which worlds are this process's.
    """
    metrics = Metrics()
    with out_of_groups(), open_node(config.ledger) as node:
        async with trio.open_nursery() as servers:
            worlds = HostedWorlds(config, metrics, servers, owns, node)
            main = await worlds.open_main()
            ws, http = await listen(servers, config, worlds, metrics)
            announce(Opened(ws.port, http.port, 0 if main is None else main.access.stage.epoch))
            if reread is not None and hangups is not None:
                servers.start_soon(reload_at_each, hangups, reread, worlds)
            if beside is not None:
                servers.start_soon(beside, worlds)
            await stop.wait()
            ws.stop_accepting()
            http.stop_accepting()
            worlds.admission.close_doors()
            if closing is not None:
                closing(worlds.open_turns)
            if watch is not None:
                servers.start_soon(watch, worlds)
            with trio.move_on_after(config.grace):
                await _wait_settled(worlds)
            await worlds.close()
            servers.cancel_scope.cancel(reason="the server shuts down")


@contextmanager
def out_of_groups() -> Generator[None]:
    """Raise a single `FootlightsError` as it is, and not in the groups that nurseries make."""
    try:
        yield
    except BaseExceptionGroup as errors:
        members = list(leaves(errors))
        if len(members) == 1 and isinstance(members[0], FootlightsError):
            raise members[0] from None
        raise


async def _wait_settled(worlds: HasOpenTurns) -> None:
    while worlds.open_turns:  # noqa: ASYNC110 - a stage has no event for that
        await trio.sleep(_GLANCE)
