"""`footlights serve` with several worlds, in this process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import evolve, frozen

from footlights_actors import standard_cast
from footlights_transports import load_config
from footlights_transports.server.serve import serve
from tests.kit.served import request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path
    from typing import Any

    from footlights.models.model import Model
    from footlights_transports import Config
    from footlights_transports.server.serve import Opened
    from footlights_transports.worlds.hosted import HostedWorlds
    from footlights_transports.worlds.world import World


@frozen
class Hosted:
    """A server that is open."""

    worlds: HostedWorlds
    ws_port: int
    http_port: int
    stop: trio.Event

    def world(self, name: str) -> World:
        """An open world."""
        return next(each for each in self.worlds.opened() if each.name == name)

    @property
    def names(self) -> set[str]:
        """The names of the open worlds."""
        return {each.name for each in self.worlds.opened()}

    async def ask(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
        return await request(self.http_port, method, path, body, token=token)


def configured(folder: Path, model: Model | None = None, *, worlds: dict[str, object], **server: object) -> Config:
    """The tavern, or a cast of this model, on free ports."""
    given = {"ws_port": 0, "http_port": 0, "ledger": str(folder / "inn.ledger"), "grace": 0.0, **server}
    options: dict[tuple[str, ...], object] = {("server", name): value for name, value in given.items()}
    options |= {("worlds", name): value for name, value in worlds.items()}
    config = load_config(options=options)
    return config if model is None else evolve(config, cast=standard_cast(model))


@asynccontextmanager
async def open_worlds(config: Config) -> AsyncGenerator[Hosted]:
    """A server, from when it is ready until it has stopped."""
    opened: list[Opened] = []
    hosts: list[HostedWorlds] = []
    ready, stop = trio.Event(), trio.Event()

    async def beside(worlds: HostedWorlds) -> None:
        hosts.append(worlds)
        ready.set()
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, config, opened.append, stop, beside=beside))
        await ready.wait()
        yield Hosted(hosts[0], opened[0].ws_port, opened[0].http_port, stop)
        stop.set()
