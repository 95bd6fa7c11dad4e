"""A request id outlives SIGKILL: never two commits and never two effects of tools, wherever the server dies."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import CommitFinal, CommitOutcome, InterruptReason, SessionParams, TurnInterrupted, laws
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.testing import only
from footlights_transports import Retry, connect
from tests.kit.cutting_proxy import Fate, open_proxy
from tests.kit.peers.dying_server import dying_server

if TYPE_CHECKING:
    from footlights_transports import ClientSession

PATIENT = Retry(first=0.01, longest=0.05)
"""A process really needs its time to start."""


def paid(ledger: Path) -> list[str]:
    return Path(f"{ledger}.paid").read_text().splitlines()


def committed(ledger: Path) -> list[str]:
    with SqliteReader(ledger) as reader:
        assert audit(reader).ok
        return [entry.turn_id for entry in reader.entries()]


async def begin(session: ClientSession, answers: list[str]) -> None:
    answers.append(await session.begin_turn("Pay.", request_id="r1"))


@pytest.mark.parametrize(
    ("point", "turn_id", "commits"),
    [("model", "t2-000001", ["t2-000001"]), ("tool", "t1-000001", []), ("commit", "t1-000001", ["t1-000001"])],
)
async def test_one_id_has_one_effect_wherever_the_server_is_killed(
    tmp_path: Path, point: str, turn_id: str, commits: list[str]
) -> None:
    ledger, answers = tmp_path / "inn.ledger", list[str]()
    async with dying_server(ledger, point) as (process, port), AsyncExitStack() as stack:
        async with open_proxy(port) as open_way, connect(f"ws://127.0.0.1:{open_way.port}") as host:
            await trio.testing.wait_all_tasks_blocked()
            handshake = open_way.carried[0]
            await host.start(SessionParams(session_id="inn"))
        # The client never gets the reply to begin_turn.
        proxy = await stack.enter_async_context(open_proxy(port, [Fate(hold_down=handshake + 1)]))
        client = await stack.enter_async_context(connect(f"ws://127.0.0.1:{proxy.port}", retry=PATIENT))
        session = client.session("inn")
        stream = await stack.enter_async_context(session.subscribe())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin, session, answers)
            await process.wait()
            assert not answers
            proxy.cut_all()
            await stack.enter_async_context(dying_server(ledger, point, port))
        await begin(session, answers)
        events = [event async for event in stream.until_commit(turn_id)]
    assert answers == [turn_id] * 2
    assert paid(ledger) == [turn_id]
    assert committed(ledger) == commits
    assert laws.check(events) == []
    assert only(events, CommitFinal).commit_outcome is (CommitOutcome.OK if commits else CommitOutcome.FAIL_CLOSED)
    if not commits:
        assert only(events, TurnInterrupted).reason is InterruptReason.RUNTIME_RESTART
