"""A server whose ledger is in PostgreSQL opens, closes and comes back, and nothing that it says has its password."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights.authority.audit.audit import audit
from footlights.authority.ledger.address import parse_url
from footlights.authority.ledger.names import reader_at
from footlights.errors import LedgerFenced, LedgerInUse
from footlights_transports import load_config
from footlights_transports.cli.serve import summary
from footlights_transports.config.source import ConfigError
from footlights_transports.server.serve import Opened, serve
from footlights_transports.worlds import hosted
from tests.kit.command import footlights
from tests.kit.postgres import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports import Config
    from tests.kit.postgres import Server


def configured(url: str) -> Config:
    given = {"ws_port": 0, "http_port": 0, "ledger": url}
    return load_config(options={("server", name): value for name, value in given.items()})


async def opened(url: str) -> Opened:
    """Serve until it is open. Returns what it announced."""
    stop, announced = trio.Event(), list[Opened]()

    def announce(opened: Opened) -> None:
        announced.append(opened)
        stop.set()

    await serve(configured(url), announce, stop)
    return announced[0]


async def test_a_server_on_a_url_opens_closes_and_comes_back_at_once(postgres_url: Callable[[str], str]) -> None:
    url = postgres_url("served")
    assert [(await opened(url)).epoch for _ in range(2)] == [1, 2]
    with reader_at(url) as reader:
        report = audit(reader)
    assert (report.flaw, report.epochs) == (None, 2)
    assert PASSWORD not in summary(configured(url), Opened(1, 2, 3))


async def test_a_second_server_is_refused_and_one_that_is_deposed_ends_with_one_error(
    postgres: Server, postgres_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted, "PATIENCE", 0.0)
    url = postgres_url("served")
    place = parse_url(url)
    ready = trio.Event()

    async def first() -> None:
        with pytest.raises(LedgerFenced):
            await serve(configured(url), lambda _: ready.set(), trio.Event())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await ready.wait()
        with pytest.raises(LedgerInUse):
            await opened(url)
        with postgres.connected(place.parameters["dbname"]) as raw:
            raw.execute("UPDATE footlights.heads SET owner = 'another' WHERE name = $1", (place.world,))


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@h:p/x", "postgresql://u:s3cret@h/x?world=a/b"])
def test_a_url_that_is_none_is_a_problem_of_the_settings(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(url)
    assert "server.ledger" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_the_commands_on_ledgers_take_a_url(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.url(postgres.new_database(with_tables=False), "w")
    assert footlights(monkeypatch, "ledger", "show", url) == 2
    assert footlights(monkeypatch, "ledger", "init", url) == 0
    assert footlights(monkeypatch, "audit", url) == 2
    trio.run(opened, url)
    for command in (("audit",), ("replay",), ("ledger", "show")):
        assert footlights(monkeypatch, *command, url) == 0
    assert (
        footlights(monkeypatch, "ledger", "copy", url, postgres.url(parse_url(url).parameters["dbname"], "copy")) == 0
    )
    assert footlights(monkeypatch, "ledger", "copy", url, url) == 2
    shown = capsys.readouterr()
    assert PASSWORD not in shown.out + shown.err
    assert "p%2Fa" not in shown.out + shown.err
