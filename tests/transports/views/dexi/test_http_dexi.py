"""The Dexi routes: what is refused before a stream begins, and how runs are found, resumed, left and canceled."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import EventType, Limits, MemoryLedger, SessionParams
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.views.dexi import runs as dexi_runs
from tests.kit.peers.http_peer import Answer, open_house, refused
from tests.kit.views.dexi_house import SILENCE, agency, answer_of, stream_of, timed
from tests.kit.views.dexi_kit import lawful, output, types

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

    from tests.kit.peers.http_peer import House
    from tests.kit.views.dexi_kit import Raw

WORK = {"message": "Search the shelves for rain."}
SLOW = {"message": "Search the shelves with search_slowly."}
INVOKE = "/api/agents/clerk/invoke"
TOKENS = {"ann": "a-token-for-this-test-only", "bob": "another-token-for-this-test"}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


class Reader:
    """One stream over a connection of its own, that breaks when it is left."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._rest = b""
        self.last_id = ""
        self.comments = 0

    async def take(self) -> Raw | None:
        """The next event; None at the end."""
        while True:
            block, found, rest = self._rest.partition(b"\n\n")
            if not found:
                more = await self._answer.read()
                if not more:
                    return None
                self._rest += more
                continue
            self._rest = rest
            if block == b":":
                self.comments += 1
                continue
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
            self.last_id = fields["id"]
            event: Raw = json.loads(fields["data"])
            return event

    async def take_until(self, kind: str) -> list[Raw]:
        events: list[Raw] = []
        while not events or events[-1]["type"] != kind:
            event = await self.take()
            assert event is not None
            events.append(event)
        return events


@asynccontextmanager
async def asking(
    house: House, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> AsyncGenerator[Reader]:
    async with await trio.open_tcp_stream("localhost", house.listening.port) as stream:
        answer = Answer(stream)
        await answer.ask(method, path, {"host": "localhost", **(headers or {})}, body)
        assert answer.status == 200
        yield Reader(answer)


def following(house: House, run_id: str, last_id: str | None = None) -> AbstractAsyncContextManager[Reader]:
    headers = {} if last_id is None else {"last-event-id": last_id}
    return asking(house, "GET", f"/api/runs/{run_id}/events", headers)


async def begin(house: House, body: Mapping[str, object], path: str = INVOKE) -> str:
    """Begin a run, and go away as soon as it has."""
    json_type = {"content-type": "application/json"}
    async with asking(house, "POST", path, json_type, json.dumps(body).encode()) as reader:
        first = await reader.take()
        assert first is not None
        run_id: str = first["run_id"]
        return run_id


# -- what is refused


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
async def test_a_body_that_makes_no_sense_is_refused_before_any_stream(
    body: bytes, status: int, quiet_clock: MockClock
) -> None:
    async with open_house(cast=agency()) as house:
        for path in ("/api/chat", INVOKE):
            answer = await house.client.post(path, content=body, headers={"content-type": "application/json"})
            assert refused(answer) == (status, "invalid_command")
        assert house.stage.statistics().sessions == 0, "nothing was begun"


async def test_a_body_must_say_that_it_is_json(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        answer = await house.client.post("/api/chat", content=b'{"message": "Hi"}')
        assert refused(answer) == (415, "invalid_command")


async def test_who_would_go_on_with_a_run_does_not_begin_another(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        answer = await house.client.post("/api/chat", json={"message": "Hi"}, headers={"last-event-id": "3"})
        assert refused(answer) == (400, "invalid_command")
        assert house.stage.statistics().sessions == 0


async def test_a_message_that_is_refused_leaves_no_session_behind_but_one_that_was_there(
    quiet_clock: MockClock,
) -> None:
    async with open_house(cast=agency(), limits=Limits(max_input_bytes=100)) as house:
        await house.start(SessionParams(session_id="letters"))
        for name in ("letters", "diary"):
            answer = await house.client.post("/api/chat", json={"message": "a" * 101, "session_id": name})
            assert refused(answer) == (413, "too_large")
        await trio.testing.wait_all_tasks_blocked()
        assert [session.session_id for _, session in house.access.open_sessions()] == ["letters"]


async def test_null_is_as_good_as_nothing(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        body = {"message": "Hi", "execution_policy": None, "session_id": None, "stream": None}
        assert types(await stream_of(house.client, "/api/chat", body)) == ["mode", "output_delta", "done"]


async def test_a_message_that_is_too_long_is_refused(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency(), limits=Limits(max_input_bytes=100)) as house:
        answer = await house.client.post("/api/chat", json={"message": "a" * 101})
        assert refused(answer) == (413, "too_large")
        assert house.stage.statistics().sessions == 0


async def test_an_unknown_agent_is_not_found(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        answer = await house.client.post("/api/agents/nobody/invoke", json=WORK)
        assert refused(answer) == (404, "unknown_agent")


async def test_an_unknown_run_is_not_found(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        for method, path in [("GET", ""), ("GET", "/events"), ("POST", "/cancel")]:
            answer = await house.client.request(method, f"/api/runs/r1-000001{path}")
            assert refused(answer) == (404, "unknown_run")


async def test_only_get_follows_a_run(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, WORK)
        answer = await house.client.head(f"/api/runs/{run_id}/events")
        assert answer.status_code == 405


@pytest.mark.parametrize("last_id", ["words", "-1", "1.5", "99", "9" * 40, "²"])
async def test_an_id_that_no_event_of_the_run_has_is_refused(last_id: str, quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, WORK)
        headers = [(b"last-event-id", last_id.encode())]
        answer = await house.client.get(f"/api/runs/{run_id}/events", headers=headers)
        assert refused(answer) == (400, "invalid_command")


# -- whose it is


async def test_a_run_is_its_user_s_own(quiet_clock: MockClock) -> None:
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


async def test_requests_count_against_the_user_s_pace(quiet_clock: MockClock) -> None:
    limits = WireLimits(user_command_burst=1, user_commands_per_second=0.001)
    async with open_house(cast=agency(), wire_limits=limits) as house:
        await answer_of(house.client, "/api/chat", WORK)
        answer = await house.client.post("/api/chat", json=WORK)
        assert refused(answer) == (429, "rate_limited")


# -- sessions


async def test_a_run_has_a_session_of_its_own_that_ends_with_it(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        await answer_of(house.client, INVOKE, WORK)
        await trio.testing.wait_all_tasks_blocked()
        assert house.stage.statistics().sessions == 0


async def test_a_named_session_is_begun_once_and_gone_on_with(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency(), policy=AccessPolicy(TOKENS), ledger=MemoryLedger()) as house:
        for name in ("letters", "ann:letters", "letters"):
            answer = await house.client.post(
                INVOKE, json={**WORK, "stream": False, "session_id": name}, headers=bearer("ann")
            )
            run = await house.client.get(f"/api/runs/{answer.json()['run_id']}", headers=bearer("ann"))
            assert run.json()["session_id"] == "ann:letters"
        assert run.json()["turn_id"] == "t1-000003"
        assert house.stage.session("ann:letters").session_id == "ann:letters"


async def test_runs_of_one_session_wait_for_each_other_and_tell_only_of_themselves(quiet_clock: MockClock) -> None:
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


# -- coming and going


async def test_who_goes_away_cancels_nothing_and_may_come_back(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        run_id = await begin(house, SLOW)
        async with following(house, run_id) as reader:
            first = await reader.take_until("tool_start")
        await trio.sleep(6)
        rest = await stream_of(house.client, f"/api/runs/{run_id}/events", headers={"last-event-id": reader.last_id})
        whole = await stream_of(house.client, f"/api/runs/{run_id}/events")
    assert types(rest).count("heartbeat") == 1, "the one that fills a silence of who came back"
    assert "heartbeat" not in types(lawful(whole, replayed=True))
    assert [event for event in first + rest if event["type"] != "heartbeat"] == whole
    assert lawful(first + rest, replayed=True)[-1]["outcome"] == "completed"


async def test_every_event_is_a_place_to_come_back_to(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        whole = await answer_of(house.client, INVOKE, WORK)
        path = f"/api/runs/{whole[0]['run_id']}/events"
        for place in range(len(whole) - 1):
            rest = await stream_of(house.client, path, headers={"last-event-id": str(place)})
            assert rest == whole[place + 1 :]
        end = await house.client.get(path, headers={"last-event-id": str(len(whole) - 1)})
        assert (end.status_code, end.content) == (204, b""), "there is nothing to come back for"


async def test_a_heartbeat_never_comes_too_soon_to_one_who_came_late(quiet_clock: MockClock) -> None:
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


async def test_in_a_long_silence_a_chat_is_kept_alive_with_comments(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency(), wire_limits=WireLimits(keep_alive=3)) as house:
        run_id = await begin(house, SLOW, "/api/chat")
        async with following(house, run_id) as reader:
            events = await reader.take_until("done")
    assert types(events) == ["mode", "output_delta", "output_delta", "done"]
    assert reader.comments == 3


async def test_an_answer_that_nobody_waits_for_is_still_there(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        with trio.move_on_after(1):
            await house.client.post(INVOKE, json={**SLOW, "stream": False})
        await trio.sleep(SILENCE)
        events = lawful(await stream_of(house.client, "/api/runs/r1-000001/events"), replayed=True)
    assert events[-1]["outcome"] == "completed"


# -- the end


async def test_a_run_that_is_over_is_not_canceled(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        for body in (WORK, {**WORK, "session_id": "letters"}):
            events = await answer_of(house.client, INVOKE, body)
            answer = await house.client.post(f"/api/runs/{events[0]['run_id']}/cancel")
            assert (answer.status_code, answer.json()) == (200, {"canceled": False})


async def test_a_run_says_where_it_is_kept_and_why_it_is_in_its_mode(quiet_clock: MockClock) -> None:
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
    monkeypatch.setattr(dexi_runs, "MAX_RUNS", 2)
    async with open_house(cast=agency()) as house:
        for _ in range(3):
            await answer_of(house.client, "/api/chat", WORK)
            await trio.testing.wait_all_tasks_blocked()
        found = [(await house.client.get(f"/api/runs/r1-{n:06d}")).status_code for n in (1, 2, 3)]
        assert found == [404, 200, 200]
        monkeypatch.setattr(dexi_runs, "MAX_BYTES", 1_500)
        await answer_of(house.client, "/api/chat", WORK)
        await trio.testing.wait_all_tasks_blocked()
        found = [(await house.client.get(f"/api/runs/r1-{n:06d}")).status_code for n in (2, 3, 4)]
        assert found == [404, 404, 404], "none is kept that is larger than all may be"


async def test_nobody_drives_out_the_runs_of_others(monkeypatch: pytest.MonkeyPatch, quiet_clock: MockClock) -> None:
    monkeypatch.setattr(dexi_runs, "MAX_RUNS_OF_A_USER", 2)

    async def found(house: House, name: str, *numbers: int) -> list[int]:
        return [
            (await house.client.get(f"/api/runs/r1-{number:06d}", headers=bearer(name))).status_code
            for number in numbers
        ]

    async with open_house(cast=agency(), policy=AccessPolicy(TOKENS)) as house:
        for name in ("bob", "ann", "ann", "ann"):
            await house.client.post("/api/chat", json={**WORK, "stream": False}, headers=bearer(name))
            await trio.testing.wait_all_tasks_blocked()
        assert await found(house, "bob", 1) == [200]
        assert await found(house, "ann", 2, 3, 4) == [404, 200, 200]
        monkeypatch.setattr(dexi_runs, "MAX_RUN_BYTES", 1_500)
        await house.client.post("/api/chat", json={**WORK, "stream": False}, headers=bearer("ann"))
        await trio.testing.wait_all_tasks_blocked()
        assert await found(house, "ann", 3, 4, 5) == [200, 200, 404], "only the one that is too large is dropped"


async def test_a_session_that_is_closed_cancels_its_runs(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        guest = await house.start(SessionParams(session_id="letters"))
        run_id = await begin(house, {**SLOW, "session_id": "letters"})
        await guest.close()
        events = lawful(await stream_of(house.client, f"/api/runs/{run_id}/events"))
    assert events[-1]["outcome"] == "canceled"


async def test_a_server_that_goes_says_that_the_end_is_not_known(quiet_clock: MockClock) -> None:
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
async def test_a_server_that_goes_tells_what_there_was(message: str, quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house, trio.open_nursery() as nursery:

        async def ask() -> None:
            events = await answer_of(house.client, INVOKE, {"message": message})
            assert events[-1]["outcome"] == "unknown"
            assert output(events)

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        house.stop()
        await house.stopped.wait()


async def test_closed_doors_begin_no_run(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        house.access.close_doors()
        answer = await house.client.post("/api/chat", json=WORK)
        assert refused(answer) == (409, "session_closed")


async def test_a_run_is_a_turn_like_any_other_for_who_follows_its_session(quiet_clock: MockClock) -> None:
    async with open_house(cast=agency()) as house:
        session = house.access.start(User(), SessionParams(session_id="letters"))
        async with session.subscribe() as stream:
            events = await answer_of(house.client, INVOKE, {**WORK, "session_id": "letters"})
            core = [event async for event in stream.until_commit("t1-000001")]
    assert core[-1].event_type is EventType.COMMIT_FINAL
    assert core[-2].payload.text == output(events)  # type: ignore[attr-defined]
