"""The public ledger contract: our ledgers keep it, and a ledger that breaks a promise of it is caught."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import normalize

import pytest
import trio
from attrs import evolve

from footlights.authority import (
    CommitRecord,
    Ledger,
    MemoryLedger,
    Opening,
    SqliteLedger,
    ToolRecord,
    TurnRequest,
    World,
)
from footlights.authority.ledger.names import ledger_at
from footlights.errors import InvalidCommand
from footlights.testing import check_ledger
from footlights.testing.faults import FlakyLedger
from footlights.testing.fenced import Fence, FencedLedger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


@asynccontextmanager
async def in_memory(_name: str) -> AsyncIterator[Ledger]:
    yield MemoryLedger()


@asynccontextmanager
async def in_front_of_memory(_name: str) -> AsyncIterator[Ledger]:
    yield FlakyLedger(MemoryLedger())


async def test_the_memory_ledger_keeps_the_contract() -> None:
    await check_ledger(in_memory, durable=False)


async def test_the_flaky_ledger_keeps_the_contract_while_it_is_available() -> None:
    await check_ledger(in_front_of_memory, durable=False)


async def test_the_sqlite_ledger_keeps_the_contract(tmp_path: Path) -> None:
    def in_a_file(name: str) -> AbstractAsyncContextManager[Ledger]:
        return SqliteLedger(tmp_path / name)

    await check_ledger(in_a_file)


async def test_the_fenced_ledger_keeps_the_contract_for_its_owner() -> None:
    @asynccontextmanager
    async def fenced(_name: str) -> AsyncIterator[Ledger]:
        yield FencedLedger(MemoryLedger(), Fence())

    await check_ledger(fenced, durable=False)


async def test_the_postgres_ledger_keeps_the_contract(postgres_url: Callable[[str], str]) -> None:
    def in_a_database(name: str) -> AbstractAsyncContextManager[Ledger]:
        return ledger_at(postgres_url(name))

    await check_ledger(in_a_database)


class CountsFromZero(MemoryLedger):
    async def begin_epoch(self, genesis: World) -> Opening:
        opening = await super().begin_epoch(genesis)
        return evolve(opening, epoch=opening.epoch - 1)


class BelievesAnyWorld(MemoryLedger):
    async def begin_epoch(self, genesis: World) -> Opening:
        await trio.lowlevel.checkpoint()
        self._epoch += 1
        return Opening(self._epoch, genesis)


class FindsNothing(MemoryLedger):
    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.lowlevel.checkpoint()
        return None


class NoEmptyBatch(MemoryLedger):
    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await super().append(records, world, requests)
        _ = records[0]


class OneChainForAll(MemoryLedger):
    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        known = await super().last_digests(session_ids)
        return dict.fromkeys(known, max(known.values(), default=""))


class ChecksNothing(MemoryLedger):
    def _check_batch(self, records: Sequence[CommitRecord]) -> None:
        return


class ChecksOnlyTurns(MemoryLedger):
    def _check_batch(self, records: Sequence[CommitRecord]) -> None:
        turns = [(each.session_id, each.turn_id) for each in records]
        if len({*turns}) < len(turns) or any(turn in self._records for turn in turns):
            raise InvalidCommand("twice")


class KeepsHalfABatch(MemoryLedger):
    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        if len({each.session_id for each in records}) < 2:
            return await super().append(records, world, requests)
        for record in records:
            await super().append([record], world)
        return None


class NewestFirst(MemoryLedger):
    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        return list(reversed(await super().latest(session_id, limit)))


class AlphabeticalTurns(MemoryLedger):
    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        every = await super().latest(session_id, 100)
        return sorted((each for each in every if each.turn_id > turn_id), key=lambda each: each.turn_id)[:limit]


class BeginsTwice(MemoryLedger):
    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        known = self._tool(key)
        await super().begin_tool(key, request)
        return known


class EndsEitherWay(MemoryLedger):
    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        if key in self._ended_tools:
            await trio.lowlevel.checkpoint()
            return
        await super().complete_tool(key, outcome)


class EndsWhatNeverBegan(MemoryLedger):
    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        if self._tool(key) is None:
            await super().begin_tool(key)
        await super().complete_tool(key, outcome)


class NeverReleases(MemoryLedger):
    async def release_tool(self, key: str) -> None:
        await trio.lowlevel.checkpoint()


class CutsKeys(MemoryLedger):
    async def begin_tool(self, key: Any, request: TurnRequest | None = None) -> ToolRecord | None:
        return await super().begin_tool(key[:10] if isinstance(key, str) else key, request)


class WritesKeysAsText(MemoryLedger):
    async def begin_tool(self, key: Any, request: TurnRequest | None = None) -> ToolRecord | None:
        return await super().begin_tool(str(key), request)


class ForgetsRequests(MemoryLedger):
    async def find_request(self, session_id: str, request_id: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return None


class ForgetsRequestsOfTools(MemoryLedger):
    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        return await super().begin_tool(key)


class KeepsTheRequestOfAFailedClaim(MemoryLedger):
    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        known = await super().begin_tool(key, request)
        self._keep_requests(() if request is None else (request,))
        return known


class LastTurnWins(MemoryLedger):
    def _keep_requests(self, requests: Sequence[TurnRequest]) -> None:
        self._requests.update({(each.session_id, each.request_id): each.turn_id for each in requests})


class ComposesRequestIds(MemoryLedger):
    def _keep_requests(self, requests: Sequence[TurnRequest]) -> None:
        super()._keep_requests([evolve(each, request_id=normalize("NFC", each.request_id)) for each in requests])


class NoCheckpoint(MemoryLedger):
    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        return None if (session_id, turn_id) not in self._records else await super().find(session_id, turn_id)

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        return {each: self._heads[each] for each in session_ids if each in self._heads}


class WritesThoughCancelled(MemoryLedger):
    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        with trio.CancelScope(shield=True):
            known = await super().begin_tool(key, request)
        await trio.lowlevel.checkpoint()
        return known


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (CountsFromZero, "epochs_count_from_one"),
        (BelievesAnyWorld, "a_world_without_a_proper_digest_is_refused"),
        (FindsNothing, "appended_commits_are_found"),
        (NoEmptyBatch, "a_batch_may_be_empty"),
        (OneChainForAll, "each_session_has_its_own_chain"),
        (ChecksNothing, "a_turn_is_committed_once"),
        (ChecksOnlyTurns, "an_unchained_commit_is_refused"),
        (KeepsHalfABatch, "a_batch_is_kept_whole_or_not_at_all"),
        (NewestFirst, "the_latest_commits_are_listed_in_order"),
        (AlphabeticalTurns, "commits_after_a_turn_come_in_the_order_of_turns"),
        (BeginsTwice, "a_tool_begins_once"),
        (EndsEitherWay, "a_tool_ends_one_way"),
        (EndsWhatNeverBegan, "a_tool_that_never_began_cannot_end"),
        (NeverReleases, "a_released_key_is_free"),
        (CutsKeys, "any_text_is_a_key"),
        (WritesKeysAsText, "a_key_that_is_no_text_is_refused"),
        (ForgetsRequests, "a_request_is_kept_with_its_commit"),
        (ForgetsRequestsOfTools, "a_request_is_kept_with_the_claim_of_a_tool"),
        (KeepsTheRequestOfAFailedClaim, "a_claim_that_fails_keeps_no_request"),
        (LastTurnWins, "a_request_has_one_turn"),
        (ComposesRequestIds, "any_text_is_a_request_id"),
        (NoCheckpoint, "every_method_is_a_checkpoint"),
        (WritesThoughCancelled, "a_call_cancelled_before_it_writes_has_no_effect"),
    ],
)
async def test_a_ledger_that_breaks_a_promise_is_caught_and_the_promise_is_named(
    broken: type[MemoryLedger], promise: str
) -> None:
    @asynccontextmanager
    async def open_broken(_name: str) -> AsyncIterator[Ledger]:
        yield broken()

    with pytest.raises(Exception) as caught:  # noqa: PT011 - a broken ledger may raise anything
        await check_ledger(open_broken, durable=False)
    assert [note.partition(":")[0] for note in caught.value.__notes__] == [f"Ledger contract, {promise}"]


async def test_a_ledger_that_forgets_is_not_durable() -> None:
    with pytest.raises(AssertionError, match="expected 2, got 1") as caught:
        await check_ledger(in_memory)
    assert "what_was_written_survives_a_restart" in caught.value.__notes__[0]


async def test_no_file_is_made_for_a_world_that_no_record_could_name(tmp_path: Path) -> None:
    class Nameless:
        def view(self) -> None: ...

        def changed(self, changes: object) -> Nameless:
            return self

        def digest(self) -> str:
            return "the world"

    async with SqliteLedger(tmp_path / "ledger") as ledger:
        with pytest.raises(Exception, match="64"):
            await ledger.begin_epoch(Nameless())
        assert not (tmp_path / "ledger").exists()
