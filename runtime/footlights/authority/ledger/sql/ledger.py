"""Ledger in a database: a store of plain calls behind the ledger protocol, on a thread of its own.

A write is durable before the call returns. A call that raises `LedgerUnavailable` has written nothing, and the next
call starts afresh, so a stage recovers when the cause is gone. A call that is cancelled while it writes finishes the
write.

A write whose outcome is not known holds all other calls until the store answers: no call may build on an unknown state.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import trio

from footlights.authority.ledger.sql.errors import LedgerUnreachable
from footlights.authority.ledger.sql.store import InDoubt
from footlights.authority.ledger.sql.tool_group import ToolGroup, WaitingStep
from footlights.authority.tool_steps import ToolStep, check_key
from footlights.errors import FootlightsError, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from footlights.authority.ledger.protocol import Opening, ToolRecord, TurnRequest
    from footlights.authority.ledger.sql.store import SqlStore
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

log = logging.getLogger("footlights.ledger")

_T = TypeVar("_T")

_FIRST_PAUSE = 0.05


class SqlLedger:
    """Implements `footlights.Ledger` with a store. `begin_epoch` opens it, `close` closes it."""

    _longest_pause = 5.0
    """Seconds between two questions about a write in doubt, or two tries to reach the store."""
    _attempts = 1
    """How often a write is tried whose connection ends without an answer."""

    def __init__(self, store: SqlStore, limiter: trio.CapacityLimiter | None = None) -> None:
        self._store = store
        self._call_lock = trio.Lock()
        self._reader_lock = trio.Lock()
        """Admits one reader at a time to the lock above, so that a commit waits for at most one of many readers."""
        # Not the one of trio, so that a ledger never waits for threads of other components.
        self._limiter = limiter or trio.CapacityLimiter(1)
        self._group = ToolGroup()
        self._left_in_doubt: tuple[ToolGroup, InDoubt] | None = None
        """A group whose write is in doubt. The next call that gets the store asks about it first."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the ledger, shielded from cancellation. `begin_epoch` opens it again."""
        with trio.CancelScope(shield=True):
            async with self._call_lock:
                await self._in_thread(self._store.close)

    async def begin_epoch(self, genesis: World) -> Opening:
        """Open the ledger if it is not open, and make it if it does not exist.

        Raises:
            LedgerInUse: another stage has it open.
            LedgerFormat: it is not a ledger, or a later version wrote it.
            LedgerDamaged: its content is inconsistent.
            LedgerUnavailable: it cannot be opened or written.
            TooLarge: its world exceeds the limits of `genesis`.
            RegistrationError: `genesis` has a malformed digest.
        """
        async with self._calling():
            opening = await self._in_thread(partial(self._store.open, genesis))
            await self._write(partial(self._store.begin_epoch, opening.epoch))
            return opening

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        known = self._store.known_digests(session_ids)
        if known is not None:
            await trio.lowlevel.checkpoint()
            return known
        async with self._calling():
            return await self._when_reached(partial(self._store.last_digests, session_ids))

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        """See the protocol; it also refuses a batch that was not judged in the ledger's own world."""
        async with self._calling():
            await self._write(partial(self._store.append, records, world, requests))

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        async with self._reader_lock, self._calling():
            return await self._in_thread(partial(self._store.find, session_id, turn_id))

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        async with self._reader_lock, self._calling():
            return await self._in_thread(partial(self._store.commits_after, session_id, turn_id, limit))

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of this session, at most `limit`, in their order. Raises `LedgerUnavailable`."""
        async with self._reader_lock, self._calling():
            return await self._in_thread(partial(self._store.latest, session_id, limit))

    async def position_of(self, commit_id: str | None) -> int | None:
        async with self._reader_lock, self._calling():
            return await self._in_thread(partial(self._store.position_of, commit_id))

    async def commits_from(self, position: int, limit: int) -> Sequence[CommitRecord]:
        async with self._reader_lock, self._calling():
            return await self._in_thread(partial(self._store.commits_from, position, limit))

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        async with self._reader_lock, self._calling():
            return await self._in_thread(partial(self._store.find_request, session_id, request_id))

    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        return await self._take(WaitingStep(key, ToolStep.STARTED, request))

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        await self._take(WaitingStep(key, ToolStep(outcome)))

    async def release_tool(self, key: str) -> None:
        await self._take(WaitingStep(key, ToolStep.RELEASED))

    async def check_writable(self) -> None:
        """A durable write that changes nothing. Raises `LedgerUnavailable` if it fails."""
        async with self._calling():
            await self._in_thread(self._store.check_writable)

    # -- steps of tools, in groups

    async def _take(self, step: WaitingStep) -> ToolRecord | None:
        check_key(step.key)
        if not self._group.takes_more:
            self._group = ToolGroup()
        group = self._group
        group.steps.append(step)
        try:
            while not group.decided:
                await (group.wait() if group.has_writer else self._write_group(group))
        except trio.Cancelled:
            if not group.begun:
                group.steps.remove(step)
                raise
            with trio.CancelScope(shield=True):
                await group.attempted.wait()
            if not group.decided:
                raise
        if group.failed is not None:
            raise _unavailable(group.failed) from group.failed
        if step.refused is not None:
            raise step.refused
        return step.known

    async def _write_group(self, group: ToolGroup) -> None:
        group.has_writer = True
        try:
            async with self._calling():
                if not group.begun:
                    # The group is not the writer's own: whatever is cancelled, its write ends and is known.
                    with trio.CancelScope(shield=True):
                        await self._attempt(group)
                await self._ask_about_doubt()
        finally:
            group.release()

    async def _attempt(self, group: ToolGroup) -> None:
        group.begun = True
        try:
            await self._in_thread(partial(self._store.take_steps, group.steps))
            group.decide(None)
        except InDoubt as doubt:
            self._left_in_doubt = group, doubt
        except FootlightsError as error:
            group.decide(error)
        except BaseException as error:
            group.decide(error)
            raise
        finally:
            group.attempted.set()

    async def _ask_about_doubt(self) -> None:
        if self._left_in_doubt is not None:
            group, doubt = self._left_in_doubt
            group.decide(None if await self._took_effect(doubt) else doubt)
            self._left_in_doubt = None

    # -- the store

    @asynccontextmanager
    async def _calling(self) -> AsyncGenerator[None]:
        """The store for one call, with nothing in doubt that another call has written."""
        async with self._call_lock:
            await self._ask_about_doubt()
            yield

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await trio.to_thread.run_sync(
            call, abandon_on_cancel=False, limiter=self._limiter, thread_name="footlights ledger"
        )

    async def _write(self, call: Callable[[], None]) -> None:
        """Write when the store can be reached. If it certainly did not write, try again a few times."""
        for left in reversed(range(self._attempts)):
            try:
                return await self._when_reached(call)
            except InDoubt as doubt:
                if await self._took_effect(doubt):
                    return None
                if not left:
                    raise _unavailable(doubt) from doubt
        return None

    async def _when_reached(self, call: Callable[[], _T]) -> _T:
        """Retry while the store cannot be reached. Nothing was written then."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._in_thread(call)
            except LedgerUnreachable as error:
                if pause == _FIRST_PAUSE:
                    log.error("commits wait: %s", error)
                await trio.sleep(pause)
                pause = min(2 * pause, self._longest_pause)

    async def _took_effect(self, doubt: InDoubt) -> bool:
        """Retry until the store answers. The lock is held meanwhile, because no call may build on an unknown state."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._in_thread(partial(self._store.took_effect, doubt.took_effect))
            except LedgerUnavailable:
                if pause == _FIRST_PAUSE:
                    log.error("commits wait: a write failed, and the ledger cannot tell yet whether it took effect")
                await trio.sleep(pause)
                pause = min(2 * pause, self._longest_pause)


def _unavailable(cause: BaseException) -> FootlightsError:
    """The error for a call that shares a write with others: the same error, not the same object."""
    if isinstance(cause, FootlightsError):
        return type(cause)(*cause.args)
    return LedgerUnavailable("The ledger could not write. Nothing was kept.")
