"""Hosted worlds: the stages of one server process, opened when a client names them and closed when nobody uses them.

The main world is opened at the start and closed at the end, and if it fails, so does the server. The failure of any
other world is its own: its clients are detached, and the next one that names it opens it again.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

import trio

from footlights import open_stage
from footlights.authority.ledger.names import ledger_at
from footlights.errors import Busy, FootlightsError, LedgerFenced, SessionClosed
from footlights.failures import contained, describe, leaves
from footlights_transports.access.admission import Admission
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.errors import UnknownWorld
from footlights_transports.views.base.view import run_views
from footlights_transports.worlds.names import MAIN
from footlights_transports.worlds.world import World, Worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from footlights.authority.ledger.names import LedgerName
    from footlights.authority.ledger.postgres.node import PostgresNode
    from footlights_transports.config.config import Config
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.views.base.view import Mount

_LOOKS = 10
"""Looks at each world in the time after which it is closed. Closing may be one look late."""

PATIENCE = 6.0
"""Seconds to wait for a world in a database: its owner may be this server before it was killed, whose lease ends."""

log = logging.getLogger("footlights.worlds")


class _Slot:
    """The place of a world from before it is opened until after it is closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.world: World | None = None
        self.failed: FootlightsError | None = None
        self.opened = trio.Event()
        """Set when it is open, or failed to open."""
        self.closed = trio.Event()
        """Set when its stage is closed."""
        self.unused_since: float | None = None


class HostedWorlds(Worlds):
    """The worlds that the settings allow. They live in `nursery`, which outlives their clients, and share `node`."""

    def __init__(
        self,
        config: Config,
        metrics: Metrics,
        nursery: trio.Nursery,
        owns: Callable[[str], bool] = lambda _: True,
        node: PostgresNode | None = None,
    ) -> None:
        """`owns` says which worlds are this process's."""
        self.admission = Admission(config.policy)
        self.views = config.views
        self.config = config
        """The settings. A reload replaces them."""
        self._metrics = metrics
        self._nursery = nursery
        self._owns = owns
        self._slots: dict[str, _Slot] = {}
        self._is_ending = False
        self._owner = trio.Lock()
        self._node = node
        self.renew: Callable[[World], object] | None = None
        """Called with each world that is opened after a reload, which changed settings of its views."""

    # -- for servers

    async def find(self, name: str, *, may_create: bool) -> World:
        while True:
            slot = self._slots.get(name) or self._open(name, may_create=may_create)
            await slot.opened.wait()
            if slot.failed is not None:
                raise slot.failed
            assert slot.world is not None, "it was opened, or has failed"
            if not slot.world.closing.is_set():
                return slot.world
            await slot.closed.wait()
            if self._is_ending:  # the slot stays
                raise SessionClosed("The server shuts down.")

    def opened(self) -> Collection[World]:
        return [slot.world for slot in self._slots.values() if slot.world is not None]

    async def keep(self) -> None:
        patience = self.config.worlds.idle_seconds
        if patience == 0:
            await trio.sleep_forever()
        async with self._owner:
            while True:
                await trio.sleep(patience / _LOOKS)
                for slot in self._slots.values():
                    self._look(slot, trio.current_time() - patience)

    def _look(self, slot: _Slot, since: float) -> None:
        if slot.world is None or slot.name == MAIN or slot.world.is_in_use:
            slot.unused_since = None
        elif slot.unused_since is None:
            slot.unused_since = trio.current_time()
        elif slot.unused_since <= since:
            slot.world.closing.set()

    # -- for the process

    async def open_main(self) -> World | None:
        """Open the main world, if it is this process's. What fails it ends the server."""
        if not self._owns(MAIN):
            return None
        slot = self._slots[MAIN] = _Slot(MAIN)
        world: World = await self._nursery.start(self._run, slot)
        return world

    @property
    def open_turns(self) -> int:
        """Turns of all worlds that are not settled."""
        return sum(each.access.stage.open_turns for each in self.opened())

    async def close(self) -> None:
        """Close every stage in order, all at once, and wait for that. Clients may still read what was said."""
        self._is_ending = True
        for slot in list(self._slots.values()):
            await slot.opened.wait()
        slots = list(self._slots.values())
        for world in self.opened():
            world.closing.set()
        for slot in slots:
            await slot.closed.wait()

    # -- one world

    def _open(self, name: str, *, may_create: bool) -> _Slot:
        """Begin to open a world. Raises `UnknownWorld`, and `Busy`."""
        if self._is_ending:
            raise SessionClosed("The server is closing. Come back to this world when it is open again.")
        if not self._owns(name):
            raise UnknownWorld("Another worker has this world: write its name in the address as it is, unescaped.")
        settings = self.config.worlds
        if not settings.exists(name):
            settings.check_may_create(name, self._slots, may_create=may_create)
        if len(self._slots) > settings.max_open:  # the main one does not count
            raise Busy(f"There are {settings.max_open} open worlds (worlds.max_open).")
        slot = self._slots[name] = _Slot(name)
        self._nursery.start_soon(self._run, slot, name=f"world {name}")
        return slot

    async def _run(self, slot: _Slot, task_status: trio.TaskStatus[World] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            if slot.name == MAIN:
                await self._host(slot, self.config, self.config.ledger, self.config.trace, task_status)
            else:
                with contained(partial(self._fail, slot)):
                    settings, trace = self.config.worlds, self.config.trace
                    settings.make_folder()
                    its_trace = None if trace is None else trace / slot.name
                    config = settings.config_of(slot.name) or self.config
                    await self._host(slot, config, settings.ledger_of(slot.name), its_trace, task_status)
        except* LedgerFenced as fenced:  # which passes through that boundary, because it closes a stage
            if slot.name == MAIN:
                raise
            self._fail(slot, fenced)
        finally:
            self._slots.pop(slot.name, None)
            slot.failed = slot.failed or SessionClosed("This world is closed.")
            slot.closed.set()
            slot.opened.set()

    def _fail(self, slot: _Slot, error: BaseException) -> None:
        """The supervision boundary of a world that is not the main one."""
        log.error("the world %s failed: %s", slot.name, describe(error))
        codes = [each.code for each in leaves(error) if isinstance(each, FootlightsError)]
        slot.failed = Busy(f"This world cannot be opened now: {(codes or [FootlightsError.code])[0]}.")

    async def _host(
        self, slot: _Slot, config: Config, place: LedgerName, trace: Path | None, task_status: trio.TaskStatus[World]
    ) -> None:
        metrics, cast = self._metrics.of_world(), config.cast
        views = [view if slot.name == MAIN else view.in_world(slot.name) for view in config.views]
        for view in views:
            cast = view.extend(cast)
        if cast.notebooks is not None and slot.name != MAIN:
            cast = cast.notebooks.in_cast(cast, cast.notebooks.store.in_world(slot.name))
        async with trio.open_nursery() as tasks:
            async with (
                ledger_at(place, node=self._node, patience=PATIENCE) as ledger,
                open_stage(
                    cast,
                    ledger=metrics.watching(ledger),
                    limits=config.limits,
                    trace=trace,
                    observe=metrics.turn_settled,
                ) as stage,
            ):
                if stage.ignores_world:
                    log.warning("%s", world_not_used(config, place, stage.world))
                access = SessionAccess(stage, admission=self.admission, watch=metrics)
                try:
                    mounts: list[Mount] = await tasks.start(run_views, access, views)
                    slot.world = World(slot.name, access, mounts)
                    if self.renew is not None:
                        self.renew(slot.world)
                    tasks.start_soon(slot.world.keep, name=f"keep {slot.name}")
                    slot.opened.set()
                    task_status.started(slot.world)
                    await slot.world.closing.wait()
                finally:
                    access.retire()
            slot.closed.set()
            if self._is_ending:  # everything that clients have to get is in their outboxes
                await trio.sleep_forever()
            tasks.cancel_scope.cancel(reason="nobody uses the world")


def world_not_used(config: Config, ledger: LedgerName, there: object) -> str:
    """The warning that a ledger has taken in another initial world, and what to do about it.

    `there` is a view of the world that the ledger has now.
    """
    if _may_be_of_another_game(config.cast.world.view(), there):
        return (
            f"{ledger} may be the ledger of another game: its world has hardly a member in common with the one of the "
            "settings, which is not used. Use another ledger (--ledger PATH), or move this one away."
        )
    file = [] if config.file is None else ["--config", str(config.file)]
    patch = shlex.join(["footlights", "world", "patch", "--ledger", str(ledger), *file])
    return (
        "The initial world of the settings ([world], cast.world_file or cast.make) is not used: "
        f"{ledger} took in another one, and goes on with what was committed since. To begin with the new world, "
        "use another ledger (--ledger PATH), or move this one away. To change the world of this one as the settings "
        f'were edited, stop the server. This commits the edit, and shows it without --why: {patch} --why "..."'
    )


def _may_be_of_another_game(here: object, there: object) -> bool:
    if not (isinstance(here, Mapping) and isinstance(there, Mapping)):
        return False
    ours, theirs = set(cast("Mapping[object, object]", here)), set(cast("Mapping[object, object]", there))
    return bool(ours - theirs and theirs - ours) and 2 * len(ours & theirs) <= min(len(ours), len(theirs))
