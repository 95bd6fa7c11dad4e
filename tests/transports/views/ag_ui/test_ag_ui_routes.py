"""AG-UI runs over real sockets: the same run again, disconnecting, cancelling, approvals, owners and restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import CommitOutcome, Limits, MemoryLedger
from footlights.authority import SqliteLedger
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy
from footlights_transports.views.ag_ui.pure.position import Position
from tests.kit.peers.http_peer import CuedModel, open_house, refused
from tests.kit.views.ag_ui_kit import RUN, asking, lawful, running, text, types, whole_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.peers.http_peer import House

TOKENS = {"ann": "a-token-for-this-test-only", "bob": "another-token-for-this-test"}
SESSION = "q.bob_237"
HELD = "Well, ~then good evening."
SAID = "Well, then good evening."
CANCEL = f"/ag-ui/default/runs/{RUN}/cancel"
BUY = asking("I want to buy the lantern.", "run-buy")


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


async def commits(house: House, session_id: str = SESSION) -> list[CommitOutcome]:
    return [each.outcome for each in await house.stage.ledger.latest(session_id, 100)]


async def test_a_run_is_a_turn_of_the_session_that_the_thread_names() -> None:
    async with open_house() as house:
        events = lawful(await whole_run(house, asking("A room?")))
        assert text(events) == "Good evening, my friend."
        assert (events[0]["threadId"], events[0]["runId"]) == ("bob#7", RUN)
        assert house.stage.session(SESSION).session_id == SESSION
        assert await commits(house) == [CommitOutcome.OK]


async def test_the_same_request_again_shows_the_same_run_and_begins_nothing() -> None:
    async with open_house() as house:
        first = await whole_run(house, asking("A room?"))
        assert await whole_run(house, asking("A room?")) == first
        assert await commits(house) == [CommitOutcome.OK]


async def test_requests_at_the_same_time_begin_one_turn() -> None:
    runs: list[list[object]] = []
    async with open_house() as house:

        async def ask() -> None:
            runs.append([*await whole_run(house, asking("A room?"))])

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        assert runs == [runs[0]] * 5
        assert await commits(house) == [CommitOutcome.OK]


async def test_another_input_under_the_same_run_is_refused_while_it_is_known() -> None:
    async with open_house() as house:
        await whole_run(house, asking("A room?"))
        answer = await house.client.post("/ag-ui/default", json=asking("A house?"))
        assert refused(answer) == (422, "invalid_command")
        assert text(await whole_run(house, asking("A house?", thread_id="another"))) != ""


async def test_a_client_continues_after_every_event() -> None:
    async with open_house() as house:
        ids: list[str | None] = []
        async with running(house.listening.port, "default", asking("A room?")) as reader:
            while await reader.take() is not None:
                ids.append(reader.last_id)
        for place, last_id in enumerate(ids, 1):
            assert await whole_run(house, asking("A room?"), last_id=last_id) == reader.events[place:]


async def test_a_client_that_comes_back_in_time_loses_and_repeats_nothing() -> None:
    model = CuedModel()
    async with open_house(model) as house:
        async with running(house.listening.port, "default", asking(HELD)) as reader:
            events = await reader.take_until("TEXT_MESSAGE_CONTENT")
        async with running(house.listening.port, "default", asking(HELD), reader.last_id) as back:
            model.cue("then")
            rest = await back.take_all()
        assert text(lawful([*events, *rest])) == SAID
        assert await commits(house) == [CommitOutcome.OK]


async def test_a_run_whose_client_stays_away_is_canceled_after_the_grace_period() -> None:
    async with open_house(CuedModel(), ag_ui_grace=0.0) as house:
        async with running(house.listening.port, "default", asking(HELD)) as reader:
            await reader.take_until("TEXT_MESSAGE_CONTENT")
        await house.stage.session(SESSION).finalize(reader.events[0]["metadata"]["turn_id"]).wait()
        assert await commits(house) == [CommitOutcome.FAIL_CLOSED]
        events = lawful(await whole_run(house, asking(HELD)))
        assert events[-1]["outcome"] == {"type": "cancelled"}


async def test_the_next_run_of_a_thread_does_not_wait_for_one_that_its_client_has_left() -> None:
    async with open_house(CuedModel(), ag_ui_grace=1_000.0) as house:
        async with running(house.listening.port, "default", asking(HELD)) as reader:
            await reader.take_until("TEXT_MESSAGE_CONTENT")
        events = await whole_run(house, asking("And now?", "run-2"))
        assert text(lawful(events)) == "And now?"


async def test_a_run_can_be_canceled_by_its_name() -> None:
    async with open_house(CuedModel()) as house:
        async with running(house.listening.port, "default", asking(HELD)) as reader:
            await reader.take_until("TEXT_MESSAGE_CONTENT")
            assert (await house.client.post(CANCEL)).json() == {"canceled": True}
            events = lawful(await reader.take_all())
        assert types(events)[-3:] == ["TEXT_MESSAGE_END", "commit", "RUN_FINISHED"]
        assert events[-1]["outcome"] == {"type": "cancelled"}
        assert (await house.client.post(CANCEL)).json() == {"canceled": False}
        assert refused(await house.client.post("/ag-ui/default/runs/none/cancel")) == (404, "unknown_run")


async def test_an_approval_is_an_interrupt_that_the_next_run_answers() -> None:
    async with open_house(cast=tavern_cast(load_seconds=0.0, pace=0.0)) as house:
        events = lawful(await whole_run(house, BUY, "innkeeper"))
        (interrupt,) = events[-1]["outcome"]["interrupts"]
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
        said = [*BUY["messages"], {"id": "2", "role": "assistant", "content": "Sure?"}]
        again = asking("", "run-answer", messages=said, resume=[answer])
        events = lawful(await whole_run(house, again, "innkeeper"))
        assert events[-1]["outcome"] == {"type": "success"}
        assert (await house.client.get("/v1/world")).json()["world"]["lantern"] == "the traveller"


@pytest.mark.parametrize(
    ("agent", "body", "status", "code"),
    [
        ("nobody", asking("A room?"), 404, "unknown_agent"),
        ("default", asking("A room?", tools=[{"name": "x"}]), 422, "frontend_tools"),
        ("default", asking(" "), 422, "invalid_command"),
        ("default", asking("A room?", "x" * 129), 422, "invalid_command"),
        ("default", asking("A room?", thread_id="#" * 100), 422, "invalid_command"),
        ("default", {"threadId": "a"}, 422, "invalid_command"),
    ],
)
async def test_a_request_that_makes_no_sense_begins_nothing(
    agent: str, body: dict[str, object], status: int, code: str
) -> None:
    async with open_house() as house:
        assert refused(await house.client.post(f"/ag-ui/{agent}", json=body)) == (status, code)
        assert house.stage.statistics().sessions == 0


@pytest.mark.parametrize("last_id", ["7", "t1-000009.1.0.0.n", "t9-000001.1.0.0.n", "t1-000001.x.0.0.n"])
async def test_a_place_that_never_was_is_refused(last_id: str) -> None:
    async with open_house() as house:
        await whole_run(house, asking("A room?"))
        answer = await house.client.post("/ag-ui/default", json=asking("A room?"), headers={"last-event-id": last_id})
        assert answer.status_code in (404, 422)
        assert await commits(house) == [CommitOutcome.OK]


async def test_a_thread_and_its_runs_belong_to_their_user() -> None:
    async with open_house(policy=AccessPolicy(TOKENS)) as house:
        port = house.listening.port
        async with running(port, "default", asking("A room?"), headers=bearer("ann")) as reader:
            of_ann = lawful(await reader.take_all())
        canceled = await house.client.post(CANCEL, headers=bearer("bob"))
        assert refused(canceled) == (404, "unknown_run")
        async with running(port, "default", asking("A room?"), headers=bearer("bob")) as reader:
            of_bob = lawful(await reader.take_all())
        assert of_bob[0]["metadata"]["turn_id"] != of_ann[0]["metadata"]["turn_id"]
        assert [await commits(house, f"{name}:{SESSION}") for name in TOKENS] == [[CommitOutcome.OK]] * 2
        refusal = await house.client.post("/ag-ui/default", json=asking("A room?"))
        assert refused(refusal) == (401, "unauthorized")


async def test_a_run_from_before_a_restart_ends_once_with_what_the_ledger_knows(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "a.ledger") as ledger, open_house(ledger=ledger) as house:
        async with running(house.listening.port, "default", asking("A room?")) as reader:
            before = await reader.take_until("TEXT_MESSAGE_CONTENT")
            last_id = reader.last_id
            await reader.take_all()
        before = before[: types(before).index("TEXT_MESSAGE_CONTENT") + 1]
    async with SqliteLedger(tmp_path / "a.ledger") as ledger, open_house(ledger=ledger) as house:
        rest = await whole_run(house, asking("A room?"), last_id=last_id)
        whole = lawful([*before, *rest])
        assert types(rest) == ["TEXT_MESSAGE_END", "text_forgotten", "commit", "RUN_FINISHED"]
        assert whole[-1]["outcome"] == {"type": "success"}
        again = lawful(await whole_run(house, asking("A room?")))
        assert types(again) == ["RUN_STARTED", "text_forgotten", "commit", "RUN_FINISHED"]
        assert await commits(house) == [CommitOutcome.OK]


# -- what hostile readers found


async def test_a_client_that_resumes_after_the_end_gets_nothing_and_holds_nothing(tmp_path: Path) -> None:
    async with (
        SqliteLedger(tmp_path / "a.ledger") as ledger,
        open_house(ledger=ledger) as house,
        running(house.listening.port, "default", asking("A room?")) as reader,
    ):
        await reader.take_all()
    async with SqliteLedger(tmp_path / "a.ledger") as ledger, open_house(ledger=ledger) as house:
        turn_id = reader.events[0]["metadata"]["turn_id"]
        hostile = ["9999999999.0.0.n", "1000000001.9.0.n", "1000000001.0.0.d", "5.9999.9999999999.m4"]
        for last_id in [reader.last_id, *(f"{turn_id}.{rest}" for rest in hostile)]:
            rest = await whole_run(house, asking("A room?"), last_id=last_id)
            assert not rest or rest[-1]["type"] == "RUN_FINISHED"
        assert house.stage.session(SESSION).statistics().subscribers == ()


async def test_a_thread_without_a_place_for_another_reader_refuses_a_run_before_it_begins() -> None:
    async with open_house(limits=Limits(max_subscribers=2)) as house:
        await whole_run(house, asking("A room?", "run-0"))
        session = house.stage.session(SESSION)
        async with session.subscribe(), session.subscribe():
            assert refused(await house.client.post("/ag-ui/default", json=asking("A room?"))) == (409, "busy")
        assert text(await whole_run(house, asking("A room?"))) == "Good evening, my friend."
        assert await commits(house) == [CommitOutcome.OK] * 2


async def test_the_same_run_id_in_two_threads_is_two_runs() -> None:
    told: dict[str, str] = {}
    async with open_house(CuedModel(), ledger=SlowLedger()) as house:

        async def ask(thread_id: str) -> None:
            events = lawful(await whole_run(house, asking(f"I am {thread_id}", thread_id=thread_id)))
            assert events[0]["threadId"] == thread_id
            told[thread_id] = text(events)

        async with trio.open_nursery() as nursery:
            for thread_id in ("alice", "bob"):
                nursery.start_soon(ask, thread_id)
    assert told == {"alice": "I am alice", "bob": "I am bob"}


class SlowLedger(MemoryLedger):
    """Lets everybody else go first."""

    async def find_request(self, session_id: str, request_id: str) -> str | None:
        await trio.testing.wait_all_tasks_blocked()
        return await super().find_request(session_id, request_id)


async def test_a_question_that_is_open_ends_the_next_run_too() -> None:
    """A page that was reloaded, or that stopped its own answer, gets the question again."""
    async with open_house(cast=tavern_cast(load_seconds=0.0, pace=0.0)) as house:
        asked = lawful(await whole_run(house, BUY, "innkeeper"))[-1]["outcome"]
        again = lawful(await whole_run(house, asking("Good evening.", "run-2"), "innkeeper"))[-1]["outcome"]
        assert asked["type"] == "interrupt"
        assert again == asked
        elsewhere = asking("Good evening.", "run-3", thread_id="another")
        assert lawful(await whole_run(house, elsewhere, "innkeeper"))[-1]["outcome"] == {"type": "success"}


async def test_a_reader_who_leaves_cancels_nothing_that_another_one_reads() -> None:
    model = CuedModel()
    async with open_house(model, ag_ui_grace=0.0) as house:
        port = house.listening.port
        async with running(port, "default", asking(HELD)) as first:
            events = await first.take_until("TEXT_MESSAGE_CONTENT")
            beginning = f"{events[0]['metadata']['turn_id']}.-1.0.0.n"
            async with running(port, "default", asking(HELD)) as second:
                await second.take()
            async with running(port, "default", asking(HELD), beginning) as third:
                await third.take()
            assert text(await whole_run(house, asking("Next.", "run-2", "another"))) == "Next."
            model.cue("then")
            assert text(lawful(await first.take_all())) == SAID


async def test_text_that_a_canceled_turn_said_and_nobody_has_any_more_is_declared() -> None:
    async with open_house(CuedModel(), limits=Limits(replay_turns=0)) as house:
        async with running(house.listening.port, "default", asking(HELD)) as reader:
            await reader.take_until("TEXT_MESSAGE_CONTENT")
            await house.client.post(CANCEL)
            await reader.take_all()
        first = str(Position(reader.events[0]["metadata"]["turn_id"], parts=1))
        rest = await whole_run(house, asking(HELD, "another-id"), last_id=first)
        assert types(rest) == ["text_forgotten", "commit", "RUN_FINISHED"]


@pytest.mark.parametrize("run_id", ["a/b", ".", ".."])
async def test_a_run_that_could_not_be_canceled_by_its_name_is_refused(run_id: str) -> None:
    async with open_house() as house:
        answer = await house.client.post("/ag-ui/default", json=asking("A room?", run_id))
        assert refused(answer) == (422, "invalid_command")
