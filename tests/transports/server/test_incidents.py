"""Incidents that clients can cause at will are counted, and the log gets their numbers rather than a line for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_transports.server.incidents import INTERVAL, Incidents

if TYPE_CHECKING:
    import pytest
    from trio.testing import MockClock


def written(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.name == "footlights.incidents"]
    caplog.clear()
    return lines


async def test_ten_thousand_failures_write_one_line_and_a_sum_after_the_interval(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    incidents = Incidents()
    for _ in range(10_000):
        incidents.failed("ws_connection", ValueError("xyzzy"))
    assert written(caplog) == ["ws_connection failed: ValueError at unknown place"]
    await trio.sleep(INTERVAL - 1)
    incidents.failed("ws_connection", ValueError("xyzzy"))
    assert written(caplog) == []
    await trio.sleep(1)
    incidents.failed("ws_connection", KeyError("xyzzy"))
    assert written(caplog) == ["ws_connection failed 10001 times in 60 s, last: KeyError at unknown place"]
    assert incidents.counts == {"ws_connection": 10_002}


async def test_each_kind_has_its_own_line_and_a_single_failure_is_no_sum(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    incidents = Incidents()
    incidents.failed("ws_connection", ValueError())
    incidents.failed("http_request", ValueError())
    await trio.sleep(INTERVAL)
    incidents.failed("http_request", ValueError())
    assert written(caplog) == [
        "ws_connection failed: ValueError at unknown place",
        "http_request failed: ValueError at unknown place",
        "http_request failed: ValueError at unknown place",
    ]


async def test_refusals_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    incidents = Incidents()
    for _ in range(3):
        incidents.refused("ws_command_rate_limited")
    assert incidents.counts == {"ws_command_rate_limited": 3}
    assert written(caplog) == []


async def test_refusals_that_a_setting_would_allow_are_logged_like_failures(
    caplog: pytest.LogCaptureFixture, quiet_clock: MockClock
) -> None:
    incidents = Incidents()
    for _ in range(1_000):
        incidents.refused("http_403", "List it in server.origins.")
        incidents.refused("http_403", "Use tokens.")
    assert written(caplog) == ["http_403: List it in server.origins.", "http_403: Use tokens."]
    await trio.sleep(INTERVAL)
    incidents.refused("http_403", "List it in server.origins.")
    assert written(caplog) == ["http_403: List it in server.origins. (1000 times in 60 s)"]
    assert incidents.counts == {"http_403": 2_001}
