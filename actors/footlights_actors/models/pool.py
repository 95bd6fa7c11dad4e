"""Model pool: shared loads, a memory budget with least-recently-used eviction, and slots.

The idea: a lease is a turn's reference to a model. A model with a lease or a load is in use and never unloaded. All
turns that need a model that is not hot share one `_Load`. It runs as a task of the stage, so it outlives the turn that
started it; when its last waiter leaves, it is cancelled. A new turn then starts another load, which first waits for the
abandoned one to end, so a driver never sees two loads at once.

Why it is correct: every decision about memory (fits, is idle, reserve) is made between two checkpoints, so no other
task can interleave. `reserved` counts a model's memory from that decision until the driver reports it hot, and
`leaving` counts it until the unload has ended; so loads never exceed the budget. Every release of a lease, load or
unload wakes all waiters, which check again. A waiter fails only when no resident model is in use or
leaving, that is, when no memory can become free. A cancel during a wait for a slot returns a slot that was granted in
the same moment (see `slots`).

Rejected: loads as tasks of turns, because an interrupted turn would end the load of all others; unloading after an idle
time, because memory is needed only when another model is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.errors import ModelError, ModelLoadFailed, RegistrationError
from footlights.events import WarmState
from footlights.failures import contained, report
from footlights.models.pool import ModelStatus
from footlights_actors.models.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights.models.model import Model

log = logging.getLogger("footlights.models")


class StandardPool:
    """Implements `footlights.models.pool.ModelPool`."""

    def __init__(self, models: Mapping[str, Model], memory_bytes: int | None = None) -> None:
        self._entries = {model_id: _Entry(model) for model_id, model in models.items()}
        self._memory_bytes = memory_bytes
        self._released = trio.Event()
        self._uses = 0
        self._loads: trio.Nursery | None = None
        for entry in self._entries.values():
            if not self._would_ever_fit(entry):
                raise RegistrationError(
                    f"The model {entry.model.model_id} takes {entry.memory_bytes} bytes, more than all models together "
                    f"may ({memory_bytes})."
                )

    # -- for the stage

    def open(self, loads: trio.Nursery) -> None:
        self._loads = loads

    @enable_ki_protection
    def prewarm(self, model_id: str) -> None:
        entry = self._entries[model_id]
        if not entry.is_hot:
            self._join(entry)

    def statistics(self) -> tuple[ModelStatus, ...]:
        return tuple(entry.status() for entry in self._entries.values())

    async def close(self) -> None:
        async with trio.open_nursery() as nursery:
            for entry in self._entries.values():
                if entry.loaded_here:
                    nursery.start_soon(self._unload, entry)

    # -- for turns

    def lease(self, model_id: str, session_id: str) -> Lease:
        return Lease(self, self._entries[model_id], session_id)

    def take(self, entry: _Entry) -> None:
        entry.turns += 1
        entry.stuck = False

    def give_back(self, entry: _Entry) -> None:
        entry.turns -= 1
        self._note_use(entry)
        self._wake()

    async def make_hot(self, entry: _Entry, report: Callable[[float], None]) -> None:
        if not entry.is_hot:
            await self._wait_for(self._join(entry), report)

    # -- loading

    def _join(self, entry: _Entry) -> _Load:
        assert self._loads is not None, "the stage opens its pool before any turn runs"
        if entry.load is None or entry.load.abandoned:
            earlier, entry.load = entry.load, _Load()
            self._loads.start_soon(self._run_load, entry, entry.load, earlier, name=f"load of {entry.model.model_id}")
        entry.load.wanted += 1
        return entry.load

    @staticmethod
    async def _wait_for(load: _Load, report: Callable[[float], None]) -> None:
        load.listeners.append(report)
        try:
            report(load.progress)
            await load.ended.wait()
        finally:
            load.listeners.remove(report)
            load.wanted -= 1
            if not load.wanted:
                load.scope.cancel(reason="no turn waits for the model any more")
        if load.error is not None:
            raise ModelLoadFailed from load.error

    @enable_ki_protection
    async def _run_load(self, entry: _Entry, load: _Load, earlier: _Load | None) -> None:
        def fail(error: BaseException) -> None:
            load.error = error
            report(log, f"the model {entry.model.model_id} could not be loaded", error)

        try:
            with contained(fail), load.scope:
                if earlier is not None:
                    await earlier.ended.wait()
                if not entry.is_hot:
                    await self._load(entry, load)
        finally:
            entry.reserved = False
            if entry.load is load:
                entry.load = None
            load.ended.set()
            self._wake()

    async def _load(self, entry: _Entry, load: _Load) -> None:
        while entry.leaving:
            await self._released.wait()
        await self._make_room(entry)
        entry.reserved = True  # no checkpoint since `_make_room`, so the room is still there
        await entry.model.load(load.report)
        if not entry.is_hot:
            raise ModelError(sentence="The model was loaded, and is not hot.")
        entry.loaded_here = True
        self._note_use(entry)

    def _note_use(self, entry: _Entry) -> None:
        self._uses += 1
        entry.last_use = self._uses

    def _wake(self) -> None:
        """Wake all tasks that wait for memory."""
        released, self._released = self._released, trio.Event()
        released.set()

    def _would_ever_fit(self, entry: _Entry) -> bool:
        return self._memory_bytes is None or entry.memory_bytes <= self._memory_bytes

    async def _make_room(self, entry: _Entry) -> None:
        while not self._fits(entry):
            idle = [each for each in self._entries.values() if each.is_idle]
            if idle:
                await self._unload(min(idle, key=lambda each: each.last_use))
            elif any(each.may_leave_later for each in self._entries.values() if each is not entry):
                await self._released.wait()
            else:
                raise ModelError(sentence="There is no memory for the model, and no other model can be unloaded.")

    def _fits(self, entry: _Entry) -> bool:
        if self._memory_bytes is None:
            return True
        taken = sum(each.memory_bytes for each in self._entries.values() if each.is_resident and each is not entry)
        return taken + entry.memory_bytes <= self._memory_bytes

    async def _unload(self, entry: _Entry) -> None:
        def fail(error: BaseException) -> None:
            entry.stuck = True  # not tried again until the model is used
            report(log, f"the model {entry.model.model_id} could not be unloaded", error)

        entry.leaving = True
        try:
            with contained(fail):
                await entry.model.unload()
                entry.loaded_here = False
        finally:
            entry.leaving = False
            self._wake()


class Lease:
    """Implements `footlights.models.pool.ModelLease`."""

    __slots__ = ("_holds_slot", "_place", "_pool", "_session_id")

    def __init__(self, pool: StandardPool, entry: _Entry, session_id: str) -> None:
        self._pool = pool
        self._place = entry
        self._session_id = session_id
        self._holds_slot = False

    def __enter__(self) -> Lease:
        self._pool.take(self._place)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._pool.give_back(self._place)

    @property
    def model(self) -> Model:
        return self._place.model

    @property
    def warm_state(self) -> WarmState:
        return self._place.warm_state

    def claim_now(self) -> bool:
        if not self._place.is_hot:
            return False
        slots = self._place.slots
        self._holds_slot = self._holds_slot or slots is None or slots.take_now()
        return self._holds_slot

    async def load(self, report: Callable[[float], None]) -> None:
        await self._pool.make_hot(self._place, report)

    async def claim(self) -> None:
        if self._holds_slot:
            return
        slots = self._place.slots
        if slots is not None:
            await slots.take(self._session_id)
        self._holds_slot = True

    def release(self) -> None:
        if self._holds_slot and self._place.slots is not None:
            self._place.slots.give_back()
        self._holds_slot = False


class _Entry:
    """One model, its slots and its users."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.slots = None if model.traits.slots is None else Slots(model.traits.slots)
        self.memory_bytes = model.traits.memory_bytes
        self.load: _Load | None = None
        self.turns = 0
        self.last_use = 0
        self.loaded_here = False
        self.reserved = False
        self.leaving = False
        self.stuck = False

    @property
    def warm_state(self) -> WarmState:
        state = self._claimed_state
        return WarmState.WARM if self.leaving and state is WarmState.HOT else state

    @property
    def _claimed_state(self) -> WarmState:
        """The state that the model reports. Raises `ModelError` for an invalid one."""
        try:
            return WarmState(self.model.warm_state)
        except ValueError:
            raise ModelError(sentence="The model's warm_state is none of cold, warm and hot.") from None

    @property
    def is_hot(self) -> bool:
        return self.warm_state is WarmState.HOT

    @property
    def may_leave_later(self) -> bool:
        """Whether it takes memory now that may become free."""
        return self.is_resident and (self.is_used or self.leaving)

    @property
    def is_resident(self) -> bool:
        return self.reserved or self.leaving or self._claimed_state is WarmState.HOT

    @property
    def is_used(self) -> bool:
        return bool(self.turns) or self.load is not None

    @property
    def is_idle(self) -> bool:
        """Whether it takes memory, is not in use, and can be unloaded."""
        takes_room = self.memory_bytes > 0 and self.is_resident
        return takes_room and not (self.is_used or self.leaving or self.stuck)

    def status(self) -> ModelStatus:
        try:
            warm_state = self.warm_state
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a boundary: one broken model must not affect the status of all
            warm_state = WarmState.COLD
        return ModelStatus(
            model_id=self.model.model_id,
            traits=self.model.traits,
            warm_state=warm_state,
            loading=self.load is not None,
            turns=self.turns,
            rounds_running=0 if self.slots is None else self.slots.taken,
            rounds_waiting=0 if self.slots is None else self.slots.waiting,
        )


class _Load:
    """A running load, and its waiters."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.wanted = 0
        self.listeners: list[Callable[[float], None]] = []
        self.progress = 0.0
        self.error: BaseException | None = None

    @property
    def abandoned(self) -> bool:
        return self.scope.cancel_called

    def report(self, progress: float) -> None:
        self.progress = progress
        for listener in list(self.listeners):
            listener(progress)
