"""Ledger contract: the promises of `footlights.Ledger`, as checks that any ledger can run.

`check_ledger` takes a function that opens ledgers by name, and runs every check on an empty ledger of its own. It runs
under trio and needs no test framework. With pytest-trio, one test is enough:

    async def test_my_ledger_keeps_the_contract(tmp_path):
        await check_ledger(lambda name: MyLedger(tmp_path / name))

The checks use only the protocol. Limits, file formats and locks of one ledger belong into its own tests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import evolve

from footlights.authority import patch
from footlights.authority.intents import Intent, IntentType
from footlights.authority.judge import JudgeRequest, judge
from footlights.authority.ledger.protocol import Ledger, ToolRecord, ToolState, TurnRequest
from footlights.authority.rules import RuleBook, accept
from footlights.authority.world import JsonWorld
from footlights.errors import InvalidCommand, RegistrationError
from footlights.testing.ledger_checks import CHECKS, WORLD, commit, equal, raises

if TYPE_CHECKING:
    from footlights.authority.judge import Judgement
    from footlights.authority.rules import Ruling
    from footlights.authority.world import World

OpenLedger: TypeAlias = Callable[[str], AbstractAsyncContextManager[Ledger]]
"""Opens the ledger of this name. A name that is new gives an empty ledger."""

_COUNTER = JsonWorld({"counter": 0})


async def check_ledger(open_ledger: OpenLedger, *, durable: bool = True) -> None:
    """Hold a ledger to every promise of the protocol. Raises `AssertionError`; its note names the broken promise.

    `open_ledger(name)` is an async context manager that gives the ledger. Each check uses a name of its own. If the
    ledger is `durable`, some checks leave the block and open the same name again: they expect what was written.
    """
    for opening_check in (*_OPENING_CHECKS, *(_DURABLE_CHECKS if durable else ())):
        with _named(opening_check):
            await opening_check(open_ledger, opening_check.__name__)
    for check in CHECKS:
        with _named(check):
            async with open_ledger(check.__name__) as ledger:
                await ledger.begin_epoch(WORLD)
                await check(ledger)


@contextmanager
def _named(check: Callable[..., Awaitable[None]]) -> Generator[None]:
    """Add the broken promise to whatever is raised."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"Ledger contract, {check.__name__}: {check.__doc__}")
        raise


# -- opening


async def epochs_count_from_one(open_ledger: OpenLedger, name: str) -> None:
    """`begin_epoch` counts the openings of a ledger, from 1."""
    async with open_ledger(name) as ledger:
        equal([(await ledger.begin_epoch(WORLD)).epoch for _ in range(4)], [1, 2, 3, 4])


async def the_first_world_is_the_genesis(open_ledger: OpenLedger, name: str) -> None:
    """An empty ledger opens with the world that it is given."""
    async with open_ledger(name) as ledger:
        equal((await ledger.begin_epoch(_COUNTER)).world.digest(), _COUNTER.digest())


async def a_world_without_a_proper_digest_is_refused(open_ledger: OpenLedger, name: str) -> None:
    """`begin_epoch` raises `RegistrationError` for a world whose digest no record could hold, and no epoch begins."""
    async with open_ledger(name) as ledger:
        await raises(RegistrationError, ledger.begin_epoch, _Nameless())
        equal((await ledger.begin_epoch(WORLD)).epoch, 1)


# -- restarts


async def what_was_written_survives_a_restart(open_ledger: OpenLedger, name: str) -> None:
    """A ledger that is opened again has its commits, chains, world, tools and requests, and counts its epochs on."""
    first = _counted("s1", "t1-000001", _COUNTER, None)
    async with open_ledger(name) as ledger:
        await ledger.begin_epoch(_COUNTER)
        await ledger.append([first.record], first.world, [TurnRequest("s1", "committed", "t1-000001")])
        await ledger.begin_tool("killed", TurnRequest("s1", "killed", "t1-000002"))
        for key in ("began", "ended", "released"):
            await ledger.begin_tool(key)
        await ledger.complete_tool("ended", "error")
        await ledger.release_tool("released")
    async with open_ledger(name) as ledger:
        opening = await ledger.begin_epoch(_COUNTER)
        equal(opening.epoch, 2)
        equal(opening.world.view(), {"counter": 1})
        equal(await ledger.find("s1", "t1-000001"), first.record)
        equal(list(await ledger.latest("s1", 9)), [first.record])
        equal(await ledger.last_digests(["s1"]), {"s1": first.record.commit_digest})
        equal(await ledger.find_request("s1", "committed"), "t1-000001")
        equal(await ledger.find_request("s1", "killed"), "t1-000002")
        equal(await ledger.begin_tool("began"), ToolRecord("began", ToolState.STARTED))
        equal(await ledger.begin_tool("ended"), ToolRecord("ended", ToolState.ERROR))
        equal(await ledger.begin_tool("released"), None)
        second = _counted("s1", "t2-000001", opening.world, first.record.commit_digest)
        await ledger.append([second.record], second.world)
        equal(list(await ledger.commits_after("s1", "t1-000000", 9)), [first.record, second.record])


async def a_refused_batch_is_not_there_after_a_restart(open_ledger: OpenLedger, name: str) -> None:
    """A batch that `append` refused is not found when the ledger is opened again."""
    async with open_ledger(name) as ledger:
        await ledger.begin_epoch(WORLD)
        good, unchained = commit("s1", "t1"), evolve(commit("s2", "t1"), previous="0" * 64)
        await raises(InvalidCommand, ledger.append, [good, unchained], WORLD)
    async with open_ledger(name) as ledger:
        await ledger.begin_epoch(WORLD)
        equal(await ledger.find("s1", "t1"), None)


_OPENING_CHECKS = (
    epochs_count_from_one,
    the_first_world_is_the_genesis,
    a_world_without_a_proper_digest_is_refused,
)
_DURABLE_CHECKS = (what_was_written_survives_a_restart, a_refused_batch_is_not_there_after_a_restart)


class _Nameless:
    """A world without a proper digest."""

    def view(self) -> None: ...

    def changed(self, changes: object) -> _Nameless:
        return self

    def digest(self) -> str:
        return "the world"


def _counted(session_id: str, turn_id: str, world: World, previous: str | None) -> Judgement:
    """A commit that adds 1 to the counter of the world, and the world after it."""

    def count(view: Any, intents: tuple[Intent, ...]) -> Ruling:
        return accept(patch.replace("/counter", view["counter"] + len(intents)))

    intent = Intent(IntentType.TOOL_RESULT, "count", {})
    return judge(JudgeRequest(session_id, turn_id, None, (intent,)), world, RuleBook({"count": count}), previous)
