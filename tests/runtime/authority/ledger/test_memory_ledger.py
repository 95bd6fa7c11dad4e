from __future__ import annotations

from typing import cast

import pytest

from footlights.authority import (
    Artifact,
    CommitRecord,
    JsonWorld,
    JudgeRequest,
    MemoryLedger,
    RuleBook,
    ToolRecord,
    ToolState,
    accept,
    every_turn,
    judge,
)
from footlights.errors import LedgerUnavailable

WORLD = JsonWorld({})


def commit(session_id: str, turn_id: str, previous: str | None = None) -> CommitRecord:
    return judge(JudgeRequest(session_id, turn_id, None), WORLD, RuleBook(), previous).record


async def test_the_oldest_commits_are_forgotten_and_their_chains_are_not() -> None:
    ledger = MemoryLedger(max_records=2)
    records = [commit(f"s{n}", "t1") for n in range(4)]
    await ledger.append(records[:1], WORLD)
    await ledger.append(records[1:], WORLD)
    assert [await ledger.find(f"s{n}", "t1") for n in range(4)] == [None, None, records[2], records[3]]
    heads = await ledger.last_digests(["s0", "s1", "s2", "s3"])
    assert heads == {record.session_id: record.commit_digest for record in records}


async def test_a_chain_is_forgotten_when_enough_others_have_committed_since() -> None:
    ledger = MemoryLedger(max_sessions=2)
    a, b = commit("a", "t1"), commit("b", "t1")
    await ledger.append([a, b], WORLD)
    await ledger.append([commit("a", "t2", a.commit_digest)], WORLD)
    await ledger.append([commit("c", "t1")], WORLD)
    assert (await ledger.last_digests(["a", "b"])).keys() == {"a"}
    await ledger.append([commit("b", "t2")], WORLD)
    assert "b" in await ledger.last_digests(["b"])


async def test_a_batch_larger_than_the_limits_is_kept_in_order() -> None:
    ledger = MemoryLedger(max_records=1, max_sessions=1)
    first = commit("a", "t1")
    last = commit("a", "t2", first.commit_digest)
    await ledger.append([first, commit("b", "t1"), commit("c", "t1"), last], WORLD)
    assert await ledger.find("a", "t2") == last
    assert await ledger.last_digests(["a"]) == {"a": last.commit_digest}


async def test_of_the_tools_only_those_that_ended_are_forgotten() -> None:
    ledger = MemoryLedger(max_records=3)
    await ledger.begin_tool("open")
    for key in ("first", "second", "third"):
        await ledger.begin_tool(key)
        await ledger.complete_tool(key, "ok")
    assert await ledger.begin_tool("open") == ToolRecord("open", ToolState.STARTED)
    assert await ledger.begin_tool("third") == ToolRecord("third", ToolState.OK)
    assert await ledger.begin_tool("first") is None


async def test_when_too_many_tools_are_open_none_may_begin_until_one_ends() -> None:
    ledger = MemoryLedger(max_records=2)
    await ledger.begin_tool("a")
    await ledger.begin_tool("b")
    with pytest.raises(LedgerUnavailable):
        await ledger.begin_tool("c")
    await ledger.complete_tool("a", "ok")
    assert await ledger.begin_tool("c") is None


async def test_commits_are_bounded_in_bytes_and_the_newest_are_kept() -> None:
    records = [commit(f"s{n}", "t1") for n in range(4)]
    size = len(records[0].written)
    ledger = MemoryLedger(max_bytes=2 * size)
    for record in records:
        await ledger.append([record], WORLD)
    assert [await ledger.find(f"s{n}", "t1") for n in range(4)] == [None, None, *records[2:]]
    assert len(await ledger.last_digests(["s0", "s1", "s2", "s3"])) == 4


async def test_the_room_of_what_was_forgotten_is_given_back() -> None:
    size = len(commit("s0", "t1").written)
    ledger = MemoryLedger(max_records=1, max_bytes=2 * size)
    for n in range(5):
        await ledger.append([commit(f"s{n}", "t1")], WORLD)
        assert await ledger.find(f"s{n}", "t1") is not None


async def test_one_that_is_larger_than_the_whole_ledger_is_chained_and_not_kept() -> None:
    ledger = MemoryLedger(max_bytes=10)
    record = commit("s", "t1")
    await ledger.append([record], WORLD)
    assert await ledger.find("s", "t1") is None
    assert await ledger.last_digests(["s"]) == {"s": record.commit_digest}


async def test_what_is_found_is_a_copy() -> None:
    ledger = MemoryLedger()
    rule = every_turn(lambda view, intents: accept(artifacts=[Artifact("deed", {"room": 1})]))
    deed = RuleBook({"deed": rule})
    await ledger.append([judge(JudgeRequest("s", "t", None), WORLD, deed, None).record], WORLD)
    for _ in range(2):
        found = await ledger.find("s", "t")
        assert found is not None
        assert found.artifacts == (Artifact("deed", {"room": 1}),)
        cast("dict[str, int]", found.artifacts[0].data)["room"] = 2
