"""Routes of narrated runs: refusals, access, and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Limits, MemoryLedger, SessionParams
from footlights_transports.access.policy import AccessPolicy, WireLimits
from tests.kit.peers.http_peer import open_house, refused
from tests.kit.views.dexi_kit import lawful, types
from tests.kit.views.dexi_server import (
    INVOKE,
    SLOW,
    TOKENS,
    WORK,
    agency,
    answer_of,
    bearer,
    begin,
    stream_of,
    timed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio.testing import MockClock

    from tests.kit.views.dexi_kit import Raw


# -- refusals


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"message": "Hi", "execution_policy": "deny", "execution_policy": "force"}', 400),
        (b"{}", 422),
        (b'{"message": ""}', 422),
        (b'{"message": " "}', 422),
        (b'{"message": 7}', 422),
        (b'{"message": null}', 422),
        (b'{"message": "Hi", "execution_policy": "maybe"}', 422),
        (b'{"message": "Hi", "execution_policy": 7}', 422),
        (b'{"message": "Hi", "stream": "yes"}', 422),
        (b'{"message": "Hi", "session_id": 7}', 422),
        (b'{"message": "Hi", "session_id": "no spaces"}', 422),
        (b'{"message": "Hi", "session_id": "s1-000099"}', 422),
        (b'{"message": "Hi", "model": "gpt"}', 422),
    ],
)
async def test_an_invalid_body_is_refused_before_a_run_begins(body: bytes, status: int, quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        for path in ("/api/chat", INVOKE):
            answer = await house.client.post(path, content=body, headers={"content-type": "application/json"})
            assert refused(answer) == (status, "invalid_command")
        assert house.stage.statistics().sessions == 0, "nothing was begun"


async def test_a_body_needs_the_content_type_of_json(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        answer = await house.client.post("/api/chat", content=b'{"message": "Hi"}')
        assert refused(answer) == (415, "invalid_command")


async def test_last_event_id_is_refused_when_beginning_a_run(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        answer = await house.client.post("/api/chat", json={"message": "Hi"}, headers={"last-event-id": "3"})
        assert refused(answer) == (400, "invalid_command")
        assert house.stage.statistics().sessions == 0


async def test_a_refused_message_leaves_no_new_session(
    quiet_clock: MockClock,
) -> None:
    async with open_house(cast=agency(), limits=Limits(max_input_bytes=100)) as house:
        await house.start(SessionParams(session_id="letters"))
        for name in ("letters", "diary"):
            answer = await house.client.post("/api/chat", json={"message": "a" * 101, "session_id": name})
            assert refused(answer) == (413, "too_large")
        await trio.testing.wait_all_tasks_blocked()
        assert [session.session_id for _, session in house.access.open_sessions()] == ["letters"]


async def test_null_counts_as_missing(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        body = {"message": "Hi", "execution_policy": None, "session_id": None, "stream": None}
        assert types(await stream_of(house.client, "/api/chat", body)) == ["mode", "output_delta", "done"]


async def test_an_unknown_agent_is_not_found(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        answer = await house.client.post("/api/agents/nobody/invoke", json=WORK)
        assert refused(answer) == (404, "unknown_agent")
        there_are = ", ".join(house.stage.personas)
        assert answer.json()["error"]["message"] == f"There is no agent of that name; there are: {there_are}."


async def test_an_unknown_run_is_not_found(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        for method, path in [("GET", ""), ("GET", "/events"), ("POST", "/cancel")]:
            answer = await house.client.request(method, f"/api/runs/r1-000001{path}")
            assert refused(answer) == (404, "unknown_run")


async def test_a_head_request_for_events_is_refused(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, WORK)
        answer = await house.client.head(f"/api/runs/{run_id}/events")
        assert answer.status_code == 405


@pytest.mark.parametrize("last_id", ["words", "-1", "1.5", "99", "9" * 40, "²"])
async def test_a_last_event_id_that_the_run_does_not_have_is_refused(last_id: str, quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, WORK)
        headers = [(b"last-event-id", last_id.encode())]
        answer = await house.client.get(f"/api/runs/{run_id}/events", headers=headers)
        assert refused(answer) == (400, "invalid_command")


# -- access


async def test_a_run_is_visible_only_to_its_user(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency(), policy=AccessPolicy(TOKENS)) as house:
        answer = await house.client.post("/api/chat", json=WORK)
        assert refused(answer) == (401, "unauthorized")
        answer = await house.client.post(INVOKE, json={**WORK, "stream": False}, headers=bearer("ann"))
        path = f"/api/runs/{answer.json()['run_id']}"
        mine = await house.client.get(path, headers=bearer("ann"))
        assert mine.json()["session_id"].startswith("ann:")
        for method, end in [("GET", ""), ("GET", "/events"), ("POST", "/cancel")]:
            foreign = await house.client.request(method, path + end, headers=bearer("bob"))
            assert refused(foreign) == (404, "unknown_run")
            nobody = await house.client.request(method, path + end)
            assert refused(nobody) == (401, "unauthorized")


async def test_requests_count_against_the_rate_limit(quiet_clock: MockClock) -> None:
    limits = WireLimits(user_command_burst=1, user_commands_per_second=0.001)
    async with open_house(cast=agency(), wire_limits=limits) as house:
        await answer_of(house.client, "/api/chat", WORK)
        answer = await house.client.post("/api/chat", json=WORK)
        assert refused(answer) == (429, "rate_limited")


# -- sessions


async def test_the_own_session_of_a_run_closes_with_it(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        await answer_of(house.client, INVOKE, WORK)
        await trio.testing.wait_all_tasks_blocked()
        assert house.stage.statistics().sessions == 0


async def test_a_named_session_is_started_once_and_used_again(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency(), policy=AccessPolicy(TOKENS), ledger=MemoryLedger()) as house:
        for name in ("letters", "ann:letters", "letters"):
            answer = await house.client.post(
                INVOKE, json={**WORK, "stream": False, "session_id": name}, headers=bearer("ann")
            )
            run = await house.client.get(f"/api/runs/{answer.json()['run_id']}", headers=bearer("ann"))
            assert run.json()["session_id"] == "ann:letters"
        assert run.json()["turn_id"] == "t1-000003"
        assert house.stage.session("ann:letters").session_id == "ann:letters"


async def test_runs_of_one_session_wait_for_each_other_and_have_separate_events(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house, trio.open_nursery() as nursery:
        got: dict[str, list[Raw]] = {}

        async def ask(name: str, body: Mapping[str, object]) -> None:
            got[name] = lawful(await stream_of(house.client, INVOKE, {**body, "session_id": "letters"}))

        nursery.start_soon(ask, "slow", SLOW)
        await trio.sleep(1)
        nursery.start_soon(ask, "fast", WORK)
    assert timed(got["slow"])[-1] == (10.2, "done", "completed")
    assert timed(got["fast"])[-1] == (9.2, "done", "completed")
    waiting = [event["state"] for event in got["fast"] if event["type"] == "heartbeat"]
    assert waiting == ["waiting for its turn"] * 2
