"""Worlds as servers see them: one that is open, and those among which they find the one that a client names.

A host with one stage has `OneWorld`. `footlights serve` has `HostedWorlds`, which opens and closes stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from footlights.errors import RegistrationError
from footlights_transports.access.idle import close_idle_sessions
from footlights_transports.errors import UnknownWorld
from footlights_transports.server.readiness import Readiness
from footlights_transports.worlds.names import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence

    from footlights_transports.access.admission import Admission
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.server.readiness import Reason
    from footlights_transports.views.base.view import Mount, View


class World:
    """A world that is open: the access to its stage, and what the views mount for it.

    Raises `RegistrationError` for a view whose handlers are not those that it declares.
    """

    def __init__(self, name: str, access: SessionAccess, mounts: Sequence[Mount]) -> None:
        self.name = name
        self.access = access
        self.mounts = mounts
        self.endpoints = [endpoint for mount in mounts for endpoint in mount.endpoints]
        self.handlers = {type(handler): handler for mount in mounts for handler in mount.handlers}
        """The handlers of HTTP requests, by the class in whose name a route was made."""
        self.readiness = Readiness(access)
        self.held = 0
        """Connections and requests that use the world now."""
        self.closing = trio.Event()
        """Set when the world has to close: nobody enters it any more."""
        self._owner = trio.Lock()
        for each in mounts:
            if {type(handler) for handler in each.handlers} != set(each.view.routes):
                raise RegistrationError(
                    f"The handlers of {type(each.view).__name__} are not of the classes in its routes."
                )

    @contextmanager
    def entered(self) -> Generator[None]:
        """Use the world, which is not closed for want of use meanwhile."""
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1

    @property
    def is_in_use(self) -> bool:
        stage = self.access.stage
        return bool(self.held or stage.open_sessions or stage.open_turns)

    async def keep(self) -> None:
        """Close idle sessions and answer questions about readiness, until cancelled. Each server may call this."""
        async with self._owner, trio.open_nursery() as nursery:
            nursery.start_soon(close_idle_sessions, self.access, name="idle sessions")
            nursery.start_soon(self.readiness.keep_checking, name="readiness")


def opened(world: World | str) -> World:
    """The world of a request. Raises `UnknownWorld` for the name of one that was not opened for it."""
    if isinstance(world, str):
        raise UnknownWorld("This world is not open now.")
    return world


class Worlds(ABC):
    """The worlds of one server process."""

    admission: Admission
    views: Sequence[View]
    """The views, which are of the same kinds in every world."""

    @abstractmethod
    async def find(self, name: str, *, may_create: bool) -> World:
        """The world of that name, which is opened if need be. Enter it at once: without that it may be closed.

        `may_create` says whether a world that does not exist may be created. Raises `UnknownWorld`, and `Busy`.
        """

    @abstractmethod
    def opened(self) -> Collection[World]:
        """The worlds that are open."""

    @abstractmethod
    async def keep(self) -> None:
        """Do what the worlds need in the background, until cancelled. Each server calls this."""

    async def readiness(self, world: World | str) -> tuple[list[Reason], str | None]:
        """Why new work should not be sent to this world, and the rule that does not return. Raises `UnknownWorld`."""
        readiness = opened(world).readiness
        reasons = await readiness.reasons()
        return reasons, readiness.overdue_rule

    async def rendered(self, metrics: Metrics) -> bytes:
        """All metrics, of all worlds together."""
        await trio.lowlevel.checkpoint()
        stages = [each.access.stage for each in self.opened()]
        return metrics.render(stages, self.admission.incidents.counts)


class OneWorld(Worlds):
    """The only world of a server: the stage of a host."""

    def __init__(self, access: SessionAccess, mounts: Sequence[Mount]) -> None:
        self.admission = access.admission
        self.views = [each.view for each in mounts]
        self._world = World(MAIN, access, mounts)

    async def find(self, name: str, *, may_create: bool) -> World:
        if name != MAIN:
            raise UnknownWorld("This server has one world: leave the name out of the address.")
        return self._world

    def opened(self) -> Collection[World]:
        return (self._world,)

    async def keep(self) -> None:
        await self._world.keep()
