"""Ledger checks: what the contract asks of a ledger on which a stage has opened, one function for each promise.

A check gets an empty ledger with a begun epoch, and uses only the protocol. Its docstring states the promise; a failure
quotes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import trio
from attrs import evolve
from trio.testing import assert_checkpoints

from footlights.authority.judge import JudgeRequest, judge
from footlights.authority.ledger.protocol import Ledger, ToolRecord, ToolState, TurnRequest
from footlights.authority.rules import RuleBook
from footlights.authority.world import JsonWorld
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.authority.record import CommitRecord

WORLD = JsonWorld({})


def commit(session_id: str, turn_id: str, previous: CommitRecord | None = None) -> CommitRecord:
    """A commit that changes nothing."""
    digest = None if previous is None else previous.commit_digest
    return judge(JudgeRequest(session_id, turn_id, None), WORLD, RuleBook(), digest).record


def equal(actual: object, expected: object) -> None:
    """Expect the two to be equal."""
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


async def raises(kind: type[Exception], call: Callable[..., Awaitable[object]], *arguments: object) -> None:
    """Expect the call to raise."""
    try:
        await call(*arguments)
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__} to be raised")


# -- commits


async def appended_commits_are_found(ledger: Ledger) -> None:
    """`find` returns the commit of a turn exactly as it was appended, and None for any other turn."""
    record = commit("s1", "t1")
    await ledger.append([record], WORLD)
    equal(await ledger.find("s1", "t1"), record)
    equal(await ledger.find("s1", "t2"), None)
    equal(await ledger.find("s2", "t1"), None)


async def a_batch_may_be_empty(ledger: Ledger) -> None:
    """`append` accepts no records at all."""
    await ledger.append([], WORLD)


async def each_session_has_its_own_chain(ledger: Ledger) -> None:
    """`last_digests` returns each session's newest commit_digest, also if one batch has several commits of it."""
    first, other = commit("s1", "t1"), commit("s2", "t1")
    second = commit("s1", "t2", first)
    await ledger.append([first, other, second], WORLD)
    expected = {"s1": second.commit_digest, "s2": other.commit_digest}
    equal(await ledger.last_digests(["s1", "s2", "s3"]), expected)
    third = commit("s1", "t3", second)
    await ledger.append([third], WORLD)
    equal(await ledger.last_digests(["s2", "s1"]), {**expected, "s1": third.commit_digest})


async def a_turn_is_committed_once(ledger: Ledger) -> None:
    """`append` raises `InvalidCommand` for a turn that was committed before or twice in a batch, and keeps nothing."""
    first = commit("s1", "t1")
    await raises(InvalidCommand, ledger.append, [first, commit("s1", "t1", first)], WORLD)
    equal(await ledger.find("s1", "t1"), None)
    await ledger.append([first], WORLD)
    await raises(InvalidCommand, ledger.append, [commit("s1", "t1", first)], WORLD)
    equal(await ledger.find("s1", "t1"), first)
    equal(await ledger.last_digests(["s1"]), {"s1": first.commit_digest})


async def an_unchained_commit_is_refused(ledger: Ledger) -> None:
    """`append` raises `InvalidCommand` for a commit that does not name the last commit of its session."""
    first = commit("s1", "t1")
    await ledger.append([first], WORLD)
    for previous in (None, "0" * 64):
        unchained = evolve(commit("s1", "t2"), previous=previous)
        await raises(InvalidCommand, ledger.append, [unchained], WORLD)
        equal(await ledger.last_digests(["s1"]), {"s1": first.commit_digest})


async def a_batch_is_kept_whole_or_not_at_all(ledger: Ledger) -> None:
    """Of a batch that `append` refuses, no record is kept."""
    good, unchained = commit("s1", "t1"), evolve(commit("s2", "t1"), previous="0" * 64)
    await raises(InvalidCommand, ledger.append, [good, unchained], WORLD)
    equal(await ledger.find("s1", "t1"), None)
    equal(await ledger.last_digests(["s1"]), {})
    await ledger.append([good], WORLD)
    equal(await ledger.find("s1", "t1"), good)


async def the_latest_commits_are_listed_in_order(ledger: Ledger) -> None:
    """`latest` returns the newest `limit` commits of one session, oldest first."""
    first = commit("s1", "t1")
    second = commit("s1", "t2", first)
    third = commit("s1", "t3", second)
    await ledger.append([first, commit("s2", "t1"), second], WORLD)
    await ledger.append([third], WORLD)
    equal(list(await ledger.latest("s1", 10)), [first, second, third])
    equal(list(await ledger.latest("s1", 2)), [second, third])
    equal(list(await ledger.latest("s1", 0)), [])
    equal(list(await ledger.latest("s3", 2)), [])


async def commits_after_a_turn_come_in_the_order_of_turns(ledger: Ledger) -> None:
    """`commits_after` orders by the turn ids, numerically, not by the order of the commits."""
    turns = ["t1-000002", "t1-000009", "t1-000010", "t1-999999", "t1-1000000", "t1-1000001", "t1-10000000"]
    written: dict[str, CommitRecord] = {}
    previous: CommitRecord | None = None
    for turn_id in reversed(turns):
        previous = written[turn_id] = commit("s1", turn_id, previous)
    await ledger.append([*written.values(), commit("s2", "t1-000005")], WORLD)
    for number, turn_id in enumerate(turns):
        after = [written[each] for each in turns[number + 1 :]]
        equal(list(await ledger.commits_after("s1", turn_id, 100)), after)
        equal(list(await ledger.commits_after("s1", turn_id, 2)), after[:2])
    equal([each.turn_id for each in await ledger.commits_after("s1", "t1-000000", 3)], turns[:3])
    equal([each.turn_id for each in await ledger.commits_after("s1", "t1-000100", 1)], ["t1-999999"])
    equal(list(await ledger.commits_after("s1", "t2-000000", 3)), [])
    equal(list(await ledger.commits_after("s3", "t1-000000", 3)), [])


async def all_commits_are_read_in_the_order_of_appending(ledger: Ledger) -> None:
    """`commits_from` pages through the commits of all sessions, and `position_of` finds the place of each."""
    equal(await ledger.position_of(None), 0)
    equal(list(await ledger.commits_from(0, 9)), [])
    records = [commit("s2", "t1-000009"), commit("s1", "t1-000001"), commit("s3", "t1-000002")]
    await ledger.append(records[:2], WORLD)
    await ledger.append(records[2:], WORLD)
    equal(await ledger.position_of(None), 3)
    equal([await ledger.position_of(each.commit_id) for each in records], [1, 2, 3])
    equal(await ledger.position_of("c-0000000000000000"), None)
    for position in range(4):
        equal(list(await ledger.commits_from(position, 9)), records[position:])
    equal(list(await ledger.commits_from(0, 2)), records[:2])


async def turns_of_a_later_epoch_come_later(ledger: Ledger) -> None:
    """`commits_after` orders epochs numerically: the turns of epoch 11 follow those of epoch 9."""
    first = commit("s1", "t1-000007")
    await ledger.append([first], WORLD)
    for _ in range(10):
        await ledger.begin_epoch(WORLD)
    # A ledger that keeps no world begins its chains anew in each epoch.
    chained = (await ledger.last_digests(["s1"])).get("s1")
    last = judge(JudgeRequest("s1", "t11-000001", None), WORLD, RuleBook(), chained).record
    await ledger.append([last], WORLD)
    equal(list(await ledger.commits_after("s1", "t1-000006", 9)), [first, last])
    equal(list(await ledger.commits_after("s1", "t1-000007", 9)), [last])
    equal(list(await ledger.commits_after("s1", "t9-000001", 9)), [last])


# -- tools


async def a_tool_begins_once(ledger: Ledger) -> None:
    """Of all calls that begin the same key, `begin_tool` answers one with None, also when they run concurrently."""
    answers: list[ToolRecord | None] = []

    async def begin() -> None:
        answers.append(await ledger.begin_tool("k"))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(begin)
    equal(answers.count(None), 1)
    equal(answers.count(ToolRecord("k", ToolState.STARTED)), 7)
    equal(await ledger.begin_tool("other"), None)


async def a_tool_ends_one_way(ledger: Ledger) -> None:
    """The same outcome may be recorded again; another raises `InvalidCommand`; an ended tool never begins again."""
    outcomes: tuple[tuple[Literal["ok", "error"], Literal["ok", "error"]], ...] = (("ok", "error"), ("error", "ok"))
    for outcome, opposite in outcomes:
        await ledger.begin_tool(outcome)
        await ledger.complete_tool(outcome, outcome)
        await ledger.complete_tool(outcome, outcome)
        await raises(InvalidCommand, ledger.complete_tool, outcome, opposite)
        equal(await ledger.begin_tool(outcome), ToolRecord(outcome, ToolState(outcome)))


async def a_tool_that_never_began_cannot_end(ledger: Ledger) -> None:
    """`complete_tool` raises `InvalidCommand` for a key that was never begun, and claims nothing."""
    await raises(InvalidCommand, ledger.complete_tool, "k", "ok")
    equal(await ledger.begin_tool("k"), None)


async def a_released_key_is_free(ledger: Ledger) -> None:
    """After `release_tool`, the key can be claimed again, and not completed before that."""
    for _ in range(2):
        equal(await ledger.begin_tool("k"), None)
        await ledger.release_tool("k")
    await raises(InvalidCommand, ledger.complete_tool, "k", "ok")
    equal(await ledger.begin_tool("k"), None)
    await ledger.complete_tool("k", "ok")
    equal(await ledger.begin_tool("k"), ToolRecord("k", ToolState.OK))


async def any_text_is_a_key(ledger: Ledger) -> None:
    """Keys are compared exactly: empty, with NUL, outside the BMP, and 100,000 characters long."""
    for key in ("", "a\0b", "\U0001f36f", "x" * 100_000):
        equal(await ledger.begin_tool(key), None)
        await ledger.complete_tool(key, "ok")
        equal(await ledger.begin_tool(key), ToolRecord(key, ToolState.OK))
    equal(await ledger.begin_tool("a"), None)


async def a_key_that_is_no_text_is_refused(ledger: Ledger) -> None:
    """The tool methods raise `InvalidCommand` for a key that is no plain string of valid Unicode, and keep nothing."""
    no_texts: tuple[Any, ...] = ("rent:\ud800", 5, b"rent", None, ToolState.OK)
    for key in no_texts:
        await raises(InvalidCommand, ledger.begin_tool, key)
        await raises(InvalidCommand, ledger.complete_tool, key, "ok")
        await raises(InvalidCommand, ledger.release_tool, key)
    # The number 5 must not have become the text "5".
    equal(await ledger.begin_tool("5"), None)


# -- requests


async def a_request_is_kept_with_its_commit(ledger: Ledger) -> None:
    """`find_request` returns the turn whose request was appended with its commit, within one session, exactly."""
    first, second = commit("s1", "t1-000001"), commit("s2", "t1-000002")
    await ledger.append([first, second], WORLD, [TurnRequest("s1", "r", "t1-000001")])
    equal(await ledger.find_request("s1", "r"), "t1-000001")
    for session_id, request_id in (("s2", "r"), ("s1", "R"), ("s1", "r "), ("s1", "")):
        equal(await ledger.find_request(session_id, request_id), None)


async def a_request_is_kept_with_the_claim_of_a_tool(ledger: Ledger) -> None:
    """A request that `begin_tool` stored is found before the commit, which may bring it again."""
    request = TurnRequest("s1", "r", "t1-000001")
    equal(await ledger.begin_tool("k", request), None)
    equal(await ledger.find_request("s1", "r"), "t1-000001")
    equal(await ledger.begin_tool("other", request), None)
    await ledger.release_tool("k")
    await ledger.append([commit("s1", "t1-000001")], WORLD, [request])
    equal(await ledger.find_request("s1", "r"), "t1-000001")


async def a_claim_that_fails_keeps_no_request(ledger: Ledger) -> None:
    """`begin_tool` stores no request if the key was claimed before."""
    await ledger.begin_tool("k")
    equal(await ledger.begin_tool("k", TurnRequest("s1", "r", "t1-000001")), ToolRecord("k", ToolState.STARTED))
    equal(await ledger.find_request("s1", "r"), None)


async def a_request_has_one_turn(ledger: Ledger) -> None:
    """`append` and `begin_tool` raise `InvalidCommand` for a request id of another turn, and keep nothing."""
    first = commit("s1", "t1-000001")
    second, other = commit("s1", "t1-000002", first), TurnRequest("s1", "r", "t1-000002")
    twice = [TurnRequest("s1", "r", "t1-000001"), other]
    await raises(InvalidCommand, ledger.append, [first, second], WORLD, twice)
    equal(await ledger.find_request("s1", "r"), None)
    await ledger.append([first], WORLD, twice[:1])
    await raises(InvalidCommand, ledger.append, [second], WORLD, [other])
    equal(await ledger.find("s1", "t1-000002"), None)
    await raises(InvalidCommand, ledger.begin_tool, "k", other)
    equal(await ledger.begin_tool("k"), None)
    equal(await ledger.find_request("s1", "r"), "t1-000001")


async def any_text_is_a_request_id(ledger: Ledger) -> None:
    """Request ids are compared exactly: with a quote, outside the BMP, composed or not, 128 characters long."""
    ids = ("'", "\U0001f36f", "\u00e9", "e\u0301", "\U0001f36f" * 128)
    for number, request_id in enumerate(ids, start=1):
        await ledger.begin_tool(request_id, TurnRequest("s1", request_id, f"t1-{number:06d}"))
    for number, request_id in enumerate(ids, start=1):
        equal(await ledger.find_request("s1", request_id), f"t1-{number:06d}")


# -- trio


async def every_method_is_a_checkpoint(ledger: Ledger) -> None:
    """Every method executes at least one trio checkpoint."""
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: ledger.begin_epoch(WORLD),
        lambda: ledger.append([commit("s1", "t1")], WORLD),
        lambda: ledger.find("s1", "t1"),
        lambda: ledger.latest("s1", 1),
        lambda: ledger.commits_after("s1", "t0-000000", 1),
        lambda: ledger.last_digests(["s1"]),
        lambda: ledger.find_request("s1", "r"),
        lambda: ledger.position_of(None),
        lambda: ledger.commits_from(0, 1),
        lambda: ledger.begin_tool("k"),
        lambda: ledger.begin_tool("k"),
        lambda: ledger.complete_tool("k", "ok"),
        lambda: ledger.release_tool("other"),
    ]
    for call in calls:
        with assert_checkpoints():
            await call()


async def a_call_cancelled_before_it_writes_has_no_effect(ledger: Ledger) -> None:
    """A call in a cancelled scope raises `trio.Cancelled`, and nothing was written."""
    await ledger.begin_tool("open")
    request = TurnRequest("s1", "r", "t1")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: ledger.append([commit("s1", "t1")], WORLD, [request]),
        lambda: ledger.begin_tool("k", request),
        lambda: ledger.complete_tool("open", "ok"),
    ]
    for call in calls:
        with trio.CancelScope() as scope:
            scope.cancel()
            await call()
        equal(scope.cancelled_caught, expected=True)
    equal(await ledger.last_digests(["s1"]), {})
    equal(await ledger.find("s1", "t1"), None)
    equal(await ledger.find_request("s1", "r"), None)
    equal(await ledger.begin_tool("k"), None)
    equal(await ledger.begin_tool("open"), ToolRecord("open", ToolState.STARTED))


CHECKS = (
    appended_commits_are_found,
    a_batch_may_be_empty,
    each_session_has_its_own_chain,
    a_turn_is_committed_once,
    an_unchained_commit_is_refused,
    a_batch_is_kept_whole_or_not_at_all,
    the_latest_commits_are_listed_in_order,
    commits_after_a_turn_come_in_the_order_of_turns,
    all_commits_are_read_in_the_order_of_appending,
    turns_of_a_later_epoch_come_later,
    a_tool_begins_once,
    a_tool_ends_one_way,
    a_tool_that_never_began_cannot_end,
    a_released_key_is_free,
    any_text_is_a_key,
    a_key_that_is_no_text_is_refused,
    a_request_is_kept_with_its_commit,
    a_request_is_kept_with_the_claim_of_a_tool,
    a_claim_that_fails_keeps_no_request,
    a_request_has_one_turn,
    any_text_is_a_request_id,
    every_method_is_a_checkpoint,
    a_call_cancelled_before_it_writes_has_no_effect,
)
