"""Owners of one world as processes: they are killed, stopped or drained, or the database is, and no commit is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, cast

import pytest
from attrs import Factory, define

from footlights.authority.audit.audit import audit
from footlights.authority.audit.rebuild import read_record, replay
from footlights.authority.ledger.names import reader_at
from tests.kit.postgres import NoServer, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = pytest.mark.cluster

PROGRAM = Path(__file__).with_name("owner.py")
LEASE = 1.0
PATIENCE = 30.0


@define(eq=False)
class Owner:
    process: subprocess.Popen[str]
    lines: list[list[str]] = Factory(list[list[str]])

    @property
    def told(self) -> list[str]:
        """The commits that it was told are durable."""
        return [name for kind, name in self.lines if kind == "ok"]

    def has(self, kind: str, number: int = 1) -> bool:
        return sum(line[0] == kind for line in self.lines) >= number

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # the last one may be cut
                self.lines.append(line.split())


@contextmanager
def owner(url: str) -> Generator[Owner]:
    command = [sys.executable, str(PROGRAM), url, str(LEASE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        one = Owner(process)
        reader = Thread(target=one.read)
        reader.start()
        try:
            yield one
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            reader.join()


def wait_for(what: Callable[[], bool]) -> float:
    """Wait for other processes, in real time. Returns the seconds."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() < began + PATIENCE, "it never came to that"
        time.sleep(0.01)
    return time.monotonic() - began


def check(url: str, *owners: Owner) -> int:
    """What was told is durable, the world counts what is durable, and nothing was altered. Returns the commits."""
    with reader_at(url) as reader:
        report = audit(reader)
        assert report.flaw is None, report.flaw
        entries = [read_record(entry) for entry in reader.entries()]
        world = cast("dict[str, int]", replay(reader).world.view())
    durable = [record.commit_id for record in entries]
    told = [name for each in owners for name in each.told]
    assert len({*durable}) == len(durable)
    assert [name for name in told if name not in durable] == []
    assert len(durable) - len(told) <= len(owners), "more commits were not told than owners ended"
    assert world["counter"] == len(durable)
    return len(durable)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_standby_takes_over_from_an_owner_that_ends(postgres_url: Callable[[str], str], how: signal.Signals) -> None:
    url = postgres_url("ended")
    with owner(url) as first:
        wait_for(lambda: first.has("ok", 20))
        with owner(url) as second:
            first.process.send_signal(how)
            first.process.wait(PATIENCE)
            seconds = wait_for(lambda: second.has("ok", 20))
            print(f"taken over {seconds:.2f} s after {how.name}")
            second.process.kill()
            second.process.wait(PATIENCE)
            wait_for(lambda: second.process.poll() is not None)
            check(url, first, second)


def test_an_owner_that_was_stopped_past_its_lease_tells_of_nothing_when_it_goes_on(
    postgres_url: Callable[[str], str],
) -> None:
    url = postgres_url("stopped")
    with owner(url) as first, owner(url) as second:
        wait_for(lambda: first.has("ok", 20) or second.has("ok", 20))
        one, other = (first, second) if first.has("ok") else (second, first)
        one.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: other.has("ok", 20))
        told = len(one.told)
        one.process.send_signal(signal.SIGCONT)
        wait_for(lambda: one.has("fenced"))
        # A line that was told before the stop may have been in the pipe; none comes after the world was taken.
        assert len(one.told) <= told + 1
        wait_for(lambda: other.has("ok", 40))
        other.process.kill()
        other.process.wait(PATIENCE)
        check(url, one, other)


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGKILL])
def test_commits_wait_while_the_database_is_down(how: signal.Signals) -> None:
    try:
        server = Server.made("fsync=on")
    except NoServer as error:
        pytest.skip(f"no PostgreSQL: {error}")
    try:
        url = server.url(server.new_database(), "down")
        with owner(url) as one:
            wait_for(lambda: one.has("ok", 20))
            for _ in range(3):
                server.kill(how)
                before = len(one.told)
                server.start()
                wait_for(lambda before=before: len(one.told) >= before + 20)  # type: ignore[misc]
            assert not one.has("fenced")
            assert not one.has("fail_closed", len(one.lines) // 2)
            one.process.kill()
            one.process.wait(PATIENCE)
            check(url, one)
    finally:
        server.remove()
