"""What every ledger must do. A new kind of ledger joins by its line in `LEDGERS`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from attrs import evolve
from trio.testing import assert_checkpoints

from footlights.authority import (
    CommitRecord,
    JsonWorld,
    JudgeRequest,
    Ledger,
    MemoryLedger,
    RuleBook,
    ToolRecord,
    ToolState,
    judge,
)
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.errors import InvalidCommand, RegistrationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

WORLD = JsonWorld({})


@asynccontextmanager
async def open_memory(directory: Path) -> AsyncIterator[Ledger]:
    yield MemoryLedger()


def open_sqlite(directory: Path) -> AbstractAsyncContextManager[Ledger]:
    return SqliteLedger(directory / "ledger")


LEDGERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Ledger]]] = {
    "memory": open_memory,
    "sqlite": open_sqlite,
}


@pytest.fixture(params=LEDGERS)
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    """A ledger on which one stage has opened."""
    async with LEDGERS[request.param](tmp_path) as opened:
        assert (await opened.begin_epoch(WORLD)).epoch == 1
        yield opened


def commit(session_id: str, turn_id: str, previous: CommitRecord | None = None) -> CommitRecord:
    digest = None if previous is None else previous.commit_digest
    return judge(JudgeRequest(session_id, turn_id, None), WORLD, RuleBook(), digest).record


async def test_each_stage_that_opens_on_a_ledger_begins_an_epoch(ledger: Ledger) -> None:
    assert [(await ledger.begin_epoch(WORLD)).epoch for _ in range(3)] == [2, 3, 4]


class Nameless:
    """A world without a proper digest."""

    def view(self) -> None: ...

    def changed(self, changes: object) -> Nameless:
        return self

    def digest(self) -> str:
        return "the world"


@pytest.mark.parametrize("name", LEDGERS)
async def test_no_ledger_begins_from_a_world_that_no_record_could_name(name: str, tmp_path: Path) -> None:
    async with LEDGERS[name](tmp_path) as opened:
        with pytest.raises(RegistrationError, match="64"):
            await opened.begin_epoch(Nameless())
        assert not (tmp_path / "ledger").exists()
        assert (await opened.begin_epoch(WORLD)).epoch == 1


async def test_what_was_appended_is_found(ledger: Ledger) -> None:
    record = commit("s1", "t1")
    await ledger.append([record], WORLD)
    assert await ledger.find("s1", "t1") == record


async def test_what_was_not_appended_is_not_found(ledger: Ledger) -> None:
    await ledger.append([commit("s1", "t1")], WORLD)
    assert await ledger.find("s1", "t2") is None
    assert await ledger.find("s2", "t1") is None


async def test_the_newest_commits_of_a_session_are_listed_in_their_order(ledger: Ledger) -> None:
    assert isinstance(ledger, MemoryLedger | SqliteLedger)
    first = commit("s1", "t1")
    second = commit("s1", "t2", first)
    third = commit("s1", "t3", second)
    await ledger.append([first, commit("s2", "t1"), second], WORLD)
    await ledger.append([third], WORLD)
    assert list(await ledger.latest("s1", 10)) == [first, second, third]
    assert list(await ledger.latest("s1", 2)) == [second, third]
    assert list(await ledger.latest("s3", 2)) == []


async def test_a_batch_may_be_empty(ledger: Ledger) -> None:
    await ledger.append([], WORLD)


async def test_each_session_has_a_chain_of_its_own(ledger: Ledger) -> None:
    one, other = commit("s1", "t1"), commit("s2", "t1")
    await ledger.append([one, other], WORLD)
    assert await ledger.last_digests(["s1", "s2", "s3"]) == {"s1": one.commit_digest, "s2": other.commit_digest}
    following = commit("s1", "t2", one)
    await ledger.append([following], WORLD)
    assert await ledger.last_digests(["s2", "s1"]) == {"s1": following.commit_digest, "s2": other.commit_digest}


async def test_a_batch_may_go_on_with_its_own_chain(ledger: Ledger) -> None:
    first = commit("s1", "t1")
    second = commit("s1", "t2", first)
    await ledger.append([first, commit("s2", "t1"), second], WORLD)
    assert await ledger.last_digests(["s1"]) == {"s1": second.commit_digest}


async def test_a_turn_is_committed_once(ledger: Ledger) -> None:
    first = commit("s1", "t1")
    await ledger.append([first], WORLD)
    with pytest.raises(InvalidCommand):
        await ledger.append([commit("s1", "t1", first)], WORLD)
    assert await ledger.find("s1", "t1") == first
    assert await ledger.last_digests(["s1"]) == {"s1": first.commit_digest}


async def test_a_turn_is_committed_once_even_within_a_batch(ledger: Ledger) -> None:
    first = commit("s1", "t1")
    with pytest.raises(InvalidCommand):
        await ledger.append([first, commit("s1", "t1", first)], WORLD)
    assert await ledger.find("s1", "t1") is None


@pytest.mark.parametrize("previous", [None, "0" * 64])
async def test_a_commit_that_is_not_chained_is_refused(ledger: Ledger, previous: str | None) -> None:
    first = commit("s1", "t1")
    await ledger.append([first], WORLD)
    with pytest.raises(InvalidCommand):
        await ledger.append([evolve(commit("s1", "t2"), previous=previous)], WORLD)
    assert await ledger.last_digests(["s1"]) == {"s1": first.commit_digest}


async def test_of_a_refused_batch_nothing_is_kept(ledger: Ledger) -> None:
    good, unchained = commit("s1", "t1"), evolve(commit("s2", "t1"), previous="0" * 64)
    with pytest.raises(InvalidCommand):
        await ledger.append([good, unchained], WORLD)
    assert await ledger.find("s1", "t1") is None
    assert await ledger.last_digests(["s1"]) == {}
    await ledger.append([good], WORLD)
    assert await ledger.find("s1", "t1") == good


async def test_a_tool_is_begun_once(ledger: Ledger) -> None:
    assert await ledger.begin_tool("k") is None
    assert await ledger.begin_tool("k") == ToolRecord("k", ToolState.STARTED)
    assert await ledger.begin_tool("other") is None


@pytest.mark.parametrize("outcome", ["ok", "error"])
async def test_a_tool_that_has_ended_never_begins_again(ledger: Ledger, outcome: Literal["ok", "error"]) -> None:
    await ledger.begin_tool("k")
    await ledger.complete_tool("k", outcome)
    assert await ledger.begin_tool("k") == ToolRecord("k", ToolState(outcome))


async def test_of_many_who_begin_the_same_tool_one_may_go_ahead(ledger: Ledger) -> None:
    answers: list[ToolRecord | None] = []

    async def begin() -> None:
        answers.append(await ledger.begin_tool("k"))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(begin)
    assert answers.count(None) == 1
    assert answers.count(ToolRecord("k", ToolState.STARTED)) == 7


async def test_a_tool_ends_one_way(ledger: Ledger) -> None:
    await ledger.begin_tool("k")
    await ledger.complete_tool("k", "ok")
    await ledger.complete_tool("k", "ok")
    with pytest.raises(InvalidCommand):
        await ledger.complete_tool("k", "error")
    assert await ledger.begin_tool("k") == ToolRecord("k", ToolState.OK)


async def test_a_tool_that_was_never_begun_cannot_end(ledger: Ledger) -> None:
    with pytest.raises(InvalidCommand):
        await ledger.complete_tool("k", "ok")
    assert await ledger.begin_tool("k") is None


async def test_a_tool_that_had_no_effect_gives_its_key_back(ledger: Ledger) -> None:
    for _ in range(2):
        assert await ledger.begin_tool("k") is None
        await ledger.release_tool("k")
    with pytest.raises(InvalidCommand):
        await ledger.complete_tool("k", "ok")
    assert await ledger.begin_tool("k") is None
    await ledger.complete_tool("k", "ok")
    assert await ledger.begin_tool("k") == ToolRecord("k", ToolState.OK)


@pytest.mark.parametrize("key", ["rent:\ud800", 5, b"rent", None, ToolState.OK])
async def test_a_key_that_is_not_plain_text_is_refused_and_nothing_is_kept(ledger: Ledger, key: Any) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: ledger.begin_tool(key),
        lambda: ledger.complete_tool(key, "ok"),
        lambda: ledger.release_tool(key),
    ]
    for call in calls:
        with pytest.raises(InvalidCommand, match="key"):
            await call()
    # The number 5 would have become the text "5" in a file.
    assert await ledger.begin_tool("5") is None


@pytest.mark.parametrize("key", ["", "a\0b", "\U0001f36f", "x" * 100_000])
async def test_any_text_can_be_a_key(ledger: Ledger, key: str) -> None:
    assert await ledger.begin_tool(key) is None
    await ledger.complete_tool(key, "ok")
    assert await ledger.begin_tool(key) == ToolRecord(key, ToolState.OK)
    assert await ledger.begin_tool("a") is None


async def test_every_method_is_a_checkpoint(ledger: Ledger) -> None:
    with assert_checkpoints():
        await ledger.append([commit("s1", "t1")], WORLD)
    with assert_checkpoints():
        await ledger.find("s1", "t1")
    with assert_checkpoints():
        await ledger.begin_tool("k")
    with assert_checkpoints():
        await ledger.begin_tool("k")
    with assert_checkpoints():
        await ledger.complete_tool("k", "ok")
    with assert_checkpoints():
        await ledger.last_digests(["s1"])
    with assert_checkpoints():
        await ledger.release_tool("k")


async def test_a_call_that_is_cancelled_before_it_writes_has_no_effect(ledger: Ledger) -> None:
    await ledger.begin_tool("open")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: ledger.append([commit("s1", "t1")], WORLD),
        lambda: ledger.begin_tool("k"),
        lambda: ledger.complete_tool("open", "ok"),
    ]
    for call in calls:
        with trio.CancelScope() as scope:
            scope.cancel()
            await call()
        assert scope.cancelled_caught
    assert await ledger.last_digests(["s1"]) == {}
    assert await ledger.find("s1", "t1") is None
    assert await ledger.begin_tool("k") is None
    assert await ledger.begin_tool("open") == ToolRecord("open", ToolState.STARTED)


async def test_the_commits_after_a_turn_come_in_the_order_in_which_their_turns_began(ledger: Ledger) -> None:
    turns = ["t1-000002", "t1-000009", "t1-000010", "t1-999999", "t1-1000000", "t1-1000001", "t1-10000000"]
    written: dict[str, CommitRecord] = {}
    previous: CommitRecord | None = None
    for turn_id in reversed(turns):
        previous = written[turn_id] = commit("s1", turn_id, previous)
    await ledger.append([*written.values(), commit("s2", "t1-000005")], WORLD)
    for number, turn_id in enumerate(turns):
        after = turns[number + 1 :]
        assert list(await ledger.commits_after("s1", turn_id, 100)) == [written[each] for each in after]
        assert list(await ledger.commits_after("s1", turn_id, 2)) == [written[each] for each in after[:2]]
    assert [each.turn_id for each in await ledger.commits_after("s1", "t1-000000", 3)] == turns[:3]
    assert [each.turn_id for each in await ledger.commits_after("s1", "t1-000100", 1)] == ["t1-999999"]
    assert list(await ledger.commits_after("s1", "t2-000000", 3)) == []
    assert list(await ledger.commits_after("s3", "t1-000000", 3)) == []


async def test_turns_of_a_later_epoch_began_later(ledger: Ledger) -> None:
    first = commit("s1", "t1-000007")
    await ledger.append([first], WORLD)
    for _ in range(10):
        await ledger.begin_epoch(WORLD)
    last = commit("s1", "t11-000001", None if isinstance(ledger, MemoryLedger) else first)
    await ledger.append([last], WORLD)
    assert list(await ledger.commits_after("s1", "t1-000006", 9)) == [first, last]
    assert list(await ledger.commits_after("s1", "t1-000007", 9)) == [last]
    assert list(await ledger.commits_after("s1", "t9-000001", 9)) == [last]
