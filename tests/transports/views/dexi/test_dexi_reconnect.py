"""Readers of narrated runs: reconnecting, heartbeats, finished runs, and the end of the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import EventType, SessionParams
from footlights_actors import Pause, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.views.base import run_keeper
from tests.kit.peers.http_peer import open_house, refused
from tests.kit.views.dexi_kit import lawful, output, types
from tests.kit.views.dexi_server import (
    INVOKE,
    SILENCE,
    SLOW,
    TOKENS,
    WORK,
    agency,
    answer_of,
    bearer,
    begin,
    following,
    stream_of,
)

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.kit.peers.http_peer import House


# -- reconnecting


@pytest.mark.shows("narration-82")
async def test_a_client_can_disconnect_and_reconnect(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, SLOW)
        async with following(house, run_id) as reader:
            first = await reader.take_until("tool_start")
        await trio.sleep(6)
        rest = await stream_of(house.client, f"/api/runs/{run_id}/events", headers={"last-event-id": reader.last_id})
        whole = await stream_of(house.client, f"/api/runs/{run_id}/events")
    assert types(rest).count("heartbeat") == 1, "the one that fills a silence after the client reconnected"
    assert "heartbeat" not in types(lawful(whole, replayed=True))
    assert [event for event in first + rest if event["type"] != "heartbeat"] == whole
    assert lawful(first + rest, replayed=True)[-1]["outcome"] == "completed"


@pytest.mark.shows("narration-56")
async def test_a_client_can_reconnect_after_any_event(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        whole = await answer_of(house.client, INVOKE, WORK)
        path = f"/api/runs/{whole[0]['run_id']}/events"
        for place in range(len(whole) - 1):
            rest = await stream_of(house.client, path, headers={"last-event-id": str(place)})
            assert rest == whole[place + 1 :]
        end = await house.client.get(path, headers={"last-event-id": str(len(whole) - 1)})
        assert (end.status_code, end.content) == (204, b""), "there is nothing to come back for"


@pytest.mark.shows("narration-81")
async def test_a_late_reader_skips_a_heartbeat_that_comes_too_soon(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, SLOW)
        await trio.sleep(3)  # a heartbeat was made at 2.4, the next ones are due at 4.8 and 7.2
        async with following(house, run_id) as reader:
            missed = await reader.take_until("tool_start")
            missed += await reader.take_until("narration_delta")
            assert trio.current_time() == 3
            live = await reader.take_until("heartbeat")
            assert trio.current_time() == pytest.approx(7.2), "1.8 s are no silence"
            rest = await reader.take_until("done")
    assert types(live) == ["heartbeat"]
    lawful(missed + live + rest, replayed=True)


@pytest.mark.shows("narration-21")
async def test_a_silent_chat_is_kept_alive_with_comments(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency(), wire_limits=WireLimits(keep_alive=3)) as house:
        run_id = await begin(house, SLOW, "/api/chat")
        async with following(house, run_id) as reader:
            events = await reader.take_until("done")
    assert types(events) == ["mode", "output_delta", "output_delta", "done"]
    assert reader.comments == 3


async def test_a_run_continues_when_the_client_stops_waiting_for_the_answer(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        with trio.move_on_after(1):
            await house.client.post(INVOKE, json={**SLOW, "stream": False})
        await trio.sleep(SILENCE)
        events = lawful(await stream_of(house.client, "/api/runs/t1-000001.s1-000001/events"), replayed=True)
    assert events[-1]["outcome"] == "completed"


# -- finished runs


async def test_a_finished_run_is_not_canceled(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        for body in (WORK, {**WORK, "session_id": "letters"}):
            events = await answer_of(house.client, INVOKE, body)
            answer = await house.client.post(f"/api/runs/{events[0]['run_id']}/cancel")
            assert (answer.status_code, answer.json()) == (200, {"canceled": False})


@pytest.mark.shows("narration-125")
async def test_the_description_of_a_run_has_its_session_turn_and_decision(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, SLOW)
        running = (await house.client.get(f"/api/runs/{run_id}")).json()
        await trio.sleep(SILENCE)
        over = (await house.client.get(f"/api/runs/{run_id}")).json()
    assert (running.pop("is_over"), over.pop("is_over")) == (False, True)
    assert running == over
    assert over["decision"]["mode"] == "execution"
    assert over["decision"]["policy"] == "auto"
    assert "shelves" not in json.dumps(over)
    assert (over["run_id"], over["session_id"], over["turn_id"]) == (run_id, "s1-000001", "t1-000001")


async def test_old_runs_are_forgotten(monkeypatch: pytest.MonkeyPatch, quiet_clock: MockClock) -> None:
    monkeypatch.setattr(run_keeper, "MAX_RUNS", 2)
    async with open_house(cast=agency()) as house:
        begun: list[str] = []
        for _ in range(3):
            begun.append((await answer_of(house.client, "/api/chat", WORK))[0]["run_id"])
            await trio.testing.wait_all_tasks_blocked()
        texts = [output(await stream_of(house.client, f"/api/runs/{run_id}/events")) for run_id in begun]
        assert ["In the ledger" in text for text in texts] == [True, False, False]
        monkeypatch.setattr(run_keeper, "MAX_BYTES", 1_500)
        await answer_of(house.client, "/api/chat", WORK)
        await trio.testing.wait_all_tasks_blocked()
        found = [(await house.client.get(f"/api/runs/r1-{n:06d}")).status_code for n in (2, 3, 4)]
        assert found == [404, 404, 404], "none is kept that is larger than all may be"


async def test_a_user_s_runs_never_displace_those_of_others(
    monkeypatch: pytest.MonkeyPatch, quiet_clock: MockClock
) -> None:
    monkeypatch.setattr(run_keeper, "MAX_RUNS_OF_A_USER", 2)

    begun: list[str] = []

    async def found(house: House, name: str, *numbers: int) -> list[bool]:
        """Whether each is kept, and not recalled from the ledger."""
        paths = [f"/api/runs/{begun[number - 1]}/events" for number in numbers]
        texts = [output(await stream_of(house.client, path, headers=bearer(name))) for path in paths]
        return ["In the ledger" not in text for text in texts]

    async def chat(house: House, name: str) -> None:
        answer = await house.client.post("/api/chat", json={**WORK, "stream": False}, headers=bearer(name))
        begun.append(answer.json()["run_id"])
        await trio.testing.wait_all_tasks_blocked()

    async with open_house(cast=agency(), policy=AccessPolicy(TOKENS)) as house:
        for name in ("bob", "ann", "ann", "ann"):
            await chat(house, name)
        assert await found(house, "bob", 1) == [True]
        assert await found(house, "ann", 2, 3, 4) == [False, True, True]
        monkeypatch.setattr(run_keeper, "MAX_RUN_BYTES", 1_500)
        await chat(house, "ann")
        assert await found(house, "ann", 3, 4, 5) == [True, True, False], "only the one that is too large is dropped"


async def test_closing_a_session_cancels_its_runs(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        guest = await house.start(SessionParams(session_id="letters"))
        run_id = await begin(house, {**SLOW, "session_id": "letters"})
        await guest.close()
        events = lawful(await stream_of(house.client, f"/api/runs/{run_id}/events"))
    assert events[-1]["outcome"] == "canceled"


async def test_a_run_in_chat_mode_ends_as_unknown_when_the_server_closes(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Well,"), Stall()])
    async with open_house(cast=standard_cast(model)) as house:
        run_id = await begin(house, {"message": "Hi"}, "/api/chat")
        async with following(house, run_id) as reader:
            events = await reader.take_until("output_delta")
            house.stop()
            events += await reader.take_until("done")
            assert await reader.take() is None
        assert lawful(events)[-1]["outcome"] == "unknown"
        await house.stopped.wait()


@pytest.mark.parametrize("message", ["Search the shelves forever.", SLOW["message"]])
async def test_a_run_in_execution_mode_ends_as_unknown_when_the_server_closes(
    message: str, quiet_clock: MockClock
) -> None:
    async with open_house(cast=agency()) as house, trio.open_nursery() as nursery:

        async def ask() -> None:
            events = await answer_of(house.client, INVOKE, {"message": message})
            assert events[-1]["outcome"] == "unknown"
            assert output(events)

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        house.stop()
        await house.stopped.wait()


async def test_no_run_begins_when_the_server_takes_no_sessions(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        house.access.admission.close_doors()
        answer = await house.client.post("/api/chat", json=WORK)
        assert refused(answer) == (409, "session_closed")


async def test_subscribers_of_the_session_see_a_run_as_a_turn(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        session = house.access.start(User(), SessionParams(session_id="letters"))
        async with session.subscribe() as stream:
            events = await answer_of(house.client, INVOKE, {**WORK, "session_id": "letters"})
            core = [event async for event in stream.until_commit("t1-000001")]
    assert core[-1].event_type is EventType.COMMIT_FINAL
    assert core[-2].payload.text == output(events)  # type: ignore[attr-defined]


async def test_a_client_that_comes_late_gets_the_steps_that_a_silence_opened(quiet_clock: MockClock) -> None:
    clerk = ScriptedModel(lambda _: [Say("Well"), Pause(6), Say(" indeed.")])
    async with open_house(cast=standard_cast(clerk)) as house:
        run_id = await begin(house, {"message": "Search the shelves for rain."}, "/api/agents/default/invoke")
        await trio.sleep(20)
        run = await stream_of(house.client, f"/api/runs/{run_id}/events")
    assert "step-2" in [each["step_id"] for each in run if each["type"] == "step_start"]
    lawful(run, replayed=True)
