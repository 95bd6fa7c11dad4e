"""`/livez` says that the server answers, `/readyz` whether new work should be sent to it, and if not, why."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import open_stage
from footlights.authority import MemoryLedger, SqliteLedger
from footlights.authority.ledger.sqlite.schema import connect
from footlights_actors import standard_cast
from footlights_transports.access.policy import AccessPolicy
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.server.readiness import CHECK_SECONDS, Readiness
from tests.kit.peers.http_peer import open_house

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator
    from pathlib import Path

    import httpx2
    from trio.testing import MockClock

OK = (200, {"status": "ok"})
DRAINING = (503, {"status": "not_ready", "reasons": ["draining"], "rule": None})
CANNOT_WRITE = (503, {"status": "not_ready", "reasons": ["ledger"], "rule": None})


def told(answer: httpx2.Response) -> tuple[int, object]:
    assert answer.headers["cache-control"] == "no-store"
    return answer.status_code, answer.json()


@contextmanager
def no_file_may_grow() -> Generator[None]:
    """As on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz"])
async def test_a_server_that_works_says_so_to_anybody(path: str) -> None:
    policy = AccessPolicy({"ann": "a-token-of-sixteen-or-more"})
    async with open_house(policy=policy, headers={"origin": "https://elsewhere.example"}) as house:
        answer = await house.client.get(path)
        assert told(answer) == OK
        assert answer.headers["access-control-allow-origin"] == "https://elsewhere.example"


async def test_a_server_that_goes_away_is_alive_and_not_ready() -> None:
    async with open_house() as house:
        house.access.admission.close_doors()
        assert told(await house.client.get("/readyz")) == DRAINING
        assert told(await house.client.get("/livez")) == OK


async def test_an_idle_server_is_not_ready_while_its_disk_is_full_and_then_is_again(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with SqliteLedger(tmp_path / "inn.ledger") as ledger, open_house(ledger=ledger) as house:
        with no_file_may_grow():
            assert told(await house.client.get("/readyz")) == CANNOT_WRITE
            assert told(await house.client.get("/livez")) == OK
        mock_clock.jump(2.0)
        assert told(await house.client.get("/readyz")) == OK


async def test_any_number_of_requests_cause_one_write_every_two_seconds(tmp_path: Path, mock_clock: MockClock) -> None:
    writes = 0

    def counting(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(note)
        return connection

    def note(statement: str) -> None:
        nonlocal writes
        writes += statement == "COMMIT"

    async with SqliteLedger(tmp_path / "inn.ledger", connect=counting) as ledger, open_house(ledger=ledger) as house:
        writes = 0
        for expected in (1, 2):
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(house.client.get, "/readyz")
            assert told(await house.client.get("/readyz")) == OK
            assert writes == expected
            mock_clock.jump(2.0)


class HangingLedger(MemoryLedger):
    async def check_writable(self) -> None:
        await trio.sleep_forever()


async def test_a_ledger_that_does_not_answer_cannot_write(autojump_clock: MockClock) -> None:
    async with open_house(ledger=HangingLedger()) as house:
        for _ in range(2):
            assert told(await house.client.get("/readyz")) == CANNOT_WRITE


async def test_a_ledger_without_a_check_of_its_own_can_write() -> None:
    async with open_house(ledger=MemoryLedger()) as house:
        assert told(await house.client.get("/readyz")) == OK


async def test_a_write_that_takes_too_long_is_not_waited_for(quiet_clock: MockClock) -> None:
    class Slow(MemoryLedger):
        seconds = 8.0

        async def check_writable(self) -> None:
            with trio.CancelScope(shield=True):  # as a write in a thread, which nobody can abandon
                await trio.sleep(self.seconds)

    ledger = Slow()
    async with (
        open_stage(standard_cast(), ledger=ledger) as stage,
        trio.open_nursery() as nursery,
    ):
        readiness = Readiness(SessionAccess(stage))
        nursery.start_soon(readiness.keep_checking)
        began = trio.current_time()
        assert await readiness.reasons() == ["ledger"]
        assert trio.current_time() - began == CHECK_SECONDS
        ledger.seconds = 0.0
        await trio.sleep(10)
        assert await readiness.reasons() == []
        nursery.cancel_scope.cancel()
