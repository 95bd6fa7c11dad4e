"""Turns whose model is behind a server: what they show, what they leave behind, and what a cancel closes."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from footlights import (
    CommitFinal,
    Fact,
    InterruptReason,
    Limits,
    Persona,
    SideEffects,
    Tool,
    ToolCallResult,
    ToolContext,
    TurnFinal,
    TurnInterrupted,
    open_stage,
    tool,
    wire,
)
from footlights.events import TokenDelta
from footlights.testing import only, payloads, take_turn
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_kit.explore import cancel_everywhere
from tests.kit.models import anthropic_wire as messages
from tests.kit.models import openai_wire as completions
from tests.kit.models.wire_server import ANSWERED, KEY, SAID, Answer, Cut, Raw, Stall, open_wire_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from footlights.events import JsonValue
    from footlights.models.model import Model
    from footlights_kit.trial import Trial
    from tests.kit.models.wire_server import Step, WireServer

THOUGHT = "xyzzy-thought"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


OPENAI_ROUNDS: tuple[Sequence[Step], Sequence[Step]] = (
    (
        completions.chunk({"reasoning_content": THOUGHT}),
        *completions.said("<thi", f"nk>{THOUGHT}</think>", "Well. "),
        completions.call(0, '{"room": 2}', name="rent"),
        completions.chunk({}, "tool_calls"),
        completions.DONE,
    ),
    completions.WHOLE,
)
ANTHROPIC_ROUNDS: tuple[Sequence[Step], Sequence[Step]] = (
    (
        messages.START,
        *messages.block(0, "thinking", {"type": "thinking_delta", "thinking": THOUGHT}, thinking=""),
        *messages.text("Well. ", index=1),
        *messages.call(2, "rent", '{"room": 2}'),
        *messages.end("tool_use"),
    ),
    messages.WHOLE,
)


both = pytest.mark.parametrize(
    ("driver", "rounds"), [(completions.model_at, OPENAI_ROUNDS), (messages.model_at, ANTHROPIC_ROUNDS)]
)


async def rent(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    return {"rented": arguments["room"]}


@pytest.mark.parametrize(
    ("driver", "rounds"), [(completions.model_at, OPENAI_ROUNDS), (messages.model_at, ANTHROPIC_ROUNDS)]
)
async def test_a_turn_thinks_asks_for_a_tool_and_answers_and_shows_no_thought(
    driver: Callable[[WireServer], Model], rounds: tuple[Sequence[Step], ...]
) -> None:
    async with open_wire_server(*map(Answer, rounds)) as server:
        async with open_stage(standard_cast(driver(server), tools=[Tool(name="rent", run=rent)])) as stage:
            events = await take_turn(stage.start(), "A room?")
        assert only(events, TurnFinal).text == "Well. A room?"
        assert THOUGHT.encode() not in b"".join(map(wire.encode, events))
        told = server.requests[1].body["messages"]
        assert THOUGHT not in str(told)
        assert '{"rented": 2}' in str(told)
        await server.left.wait()


def asks_openai(arguments: str) -> Sequence[Step]:
    call = completions.call(0, arguments, name="delete_logs")
    return call, completions.chunk({}, "tool_calls"), completions.DONE


def asks_anthropic(arguments: str) -> Sequence[Step]:
    return messages.START, *messages.call(0, "delete_logs", arguments), *messages.end("tool_use")


@pytest.mark.parametrize(
    ("driver", "asks", "whole"),
    [(completions.model_at, asks_openai, completions.WHOLE), (messages.model_at, asks_anthropic, messages.WHOLE)],
)
@pytest.mark.parametrize("arguments", ['{"older_than": 365', "[365]", '"365"', "null", '{"older_than": 365}{}'])
async def test_a_tool_is_not_run_with_other_arguments_than_the_model_meant(
    driver: Callable[[WireServer], Model],
    asks: Callable[[str], Sequence[Step]],
    whole: Sequence[Step],
    arguments: str,
) -> None:
    ran: list[int] = []

    @tool(side_effects=SideEffects.IMMEDIATE)
    async def delete_logs(older_than: int = 0) -> None:
        ran.append(older_than)

    answers = [asks(arguments), asks('{"older_than": 7}'), asks(""), whole]
    async with (
        open_wire_server(*map(Answer, answers)) as server,
        open_stage(standard_cast(driver(server), tools=[delete_logs])) as stage,
    ):
        events = await take_turn(stage.start(), "Tidy up.")
        told = server.requests[1].body["messages"]
    errors = [each.error and each.error.code for each in payloads(events, ToolCallResult)]
    assert errors == ["invalid_arguments", None, None]
    assert ran == [7, 0], "a call without arguments has the defaults"
    assert "The arguments are not a JSON object." in str(told)


async def test_a_fact_that_no_model_could_be_told_ends_the_turn_and_nothing_is_sent() -> None:
    persona = Persona(facts=lambda *_: [Fact("rumour", f"{SAID} \ud800")])
    async with open_wire_server() as server:
        async with open_stage(standard_cast(messages.model_at(server), personas=persona)) as stage:
            events = await take_turn(stage.start(), "A room?")
        assert server.requests == []
    end = only(events, TurnInterrupted)
    assert (end.reason, end.detail) == (InterruptReason.WORKLOAD_ERROR, "invalid_registration")


@pytest.mark.parametrize(
    ("driver", "steps"),
    [
        (completions.model_at, (*completions.said(ANSWERED), Stall())),
        (messages.model_at, (messages.START, *messages.text(ANSWERED), Stall())),
    ],
)
async def test_a_canceled_turn_closes_its_request(driver: Callable[[WireServer], Model], steps: Sequence[Step]) -> None:
    async with open_wire_server(Answer(steps)) as server, open_stage(standard_cast(driver(server))) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id):
                if isinstance(event.payload, TokenDelta):
                    assert not server.left.is_set()
                    session.cancel(turn_id)
        await server.left.wait()


FAILURES: dict[str, Answer] = {
    "wrong key": Answer((f"{KEY} {SAID}",), 401),
    "rate limit": Answer((f"{KEY} {SAID}",), 429, {"Retry-After": "3"}),
    "failure": Answer((f"{KEY} {SAID}",), 500),
    "cut": Answer((*completions.said(ANSWERED), Cut())),
    "garbage": Answer((*completions.said(ANSWERED), Raw(f"{SAID}{ANSWERED}\r\n".encode()))),
    "no http": Answer((Raw(f"{SAID} {ANSWERED} {KEY}\r\n\r\n".encode()), Cut()), silent=True),
    "no event": Answer((f"data: {SAID}\n\n",)),
    "error": Answer((messages.event("error", error={"type": "api_error", "message": f"{SAID} {KEY}"}),)),
    "whole": Answer(completions.WHOLE),
}


ONCE = Limits(retry_wait=0)


@pytest.mark.parametrize("driver", [completions.model_at, messages.model_at])
async def test_no_log_no_error_and_no_file_says_the_key_or_what_was_said(
    driver: Callable[[WireServer], Model], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[bytes] = []
    async with open_wire_server(*FAILURES.values()) as server:
        async with open_stage(standard_cast(driver(server)), ledger=tmp_path / "inn.ledger", limits=ONCE) as stage:
            session = stage.start()
            for _ in FAILURES:
                events = await take_turn(session, SAID)
                seen += [wire.encode(event) for event in events if not isinstance(event.payload, TokenDelta)]
        assert len(server.requests) == len(FAILURES)
        await server.left.wait()
    logged = "\n".join(f"{record.getMessage()} {_errors_of(record)}" for record in caplog.records)
    files = _all_in(tmp_path)
    assert "httpx2" in {record.name for record in caplog.records}
    assert not [event for event in seen if KEY.encode() in event or SAID.encode() in event]
    for secret in (KEY, SAID, ANSWERED):
        assert secret not in logged
        assert secret.encode() not in files


def _all_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def _errors_of(record: logging.LogRecord) -> str:
    return "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""


@pytest.mark.parametrize(
    ("driver", "rounds"), [(completions.model_at, OPENAI_ROUNDS), (messages.model_at, ANTHROPIC_ROUNDS)]
)
def test_a_turn_canceled_anywhere_leaves_no_connection(
    driver: Callable[[WireServer], Model], rounds: tuple[Sequence[Step], ...]
) -> None:
    """The laws hold at each of these moments, too, and no task is left: the kit sees to that."""

    async def scenario(trial: Trial) -> None:
        async with open_wire_server(*map(Answer, rounds)) as server:
            cast = standard_cast(driver(server), tools=[Tool(name="rent", run=rent)])
            async with open_stage(cast) as stage:
                session = stage.start()
                async with session.subscribe() as stream:
                    turn_id = session.begin_turn("A room?")
                    trial.aim(lambda: session.cancel(turn_id))
                    async for _ in stream.until_commit(turn_id):
                        pass
            if server.connections:
                await server.left.wait()

    assert cancel_everywhere(scenario, orders=1, pairs=10).points > 50


LATER = Answer(("{}",), 429, {"Content-Type": "application/json", "Retry-After": "0"})
DRIVERS = [(completions.model_at, completions.WHOLE), (messages.model_at, messages.WHOLE)]


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(("driver", "whole"), DRIVERS, ids=["openai", "anthropic"])
async def test_a_server_that_says_when_is_asked_once_more(
    driver: Callable[[WireServer], Model], whole: Sequence[Step], status: int
) -> None:
    async with open_wire_server(evolve(LATER, status=status), Answer(whole)) as server:
        async with open_stage(standard_cast(driver(server))) as stage:
            events = await take_turn(stage.start(), "A room?")
        first, second = server.requests
    assert only(events, TurnFinal).text == "A room?"
    assert first.body == second.body


@pytest.mark.parametrize("driver", [completions.model_at, messages.model_at])
def test_a_turn_that_is_asked_again_and_then_replaced_is_canceled_anywhere(
    driver: Callable[[WireServer], Model],
) -> None:
    async def scenario(trial: Trial) -> None:
        async with open_wire_server(LATER, LATER) as server:
            limited, script = driver(server), ScriptedModel(lambda _: [Say("Aye.")], model_id="script")
            persona = Persona(models=[limited.model_id, "script"])
            async with open_stage(standard_cast(limited, script, personas=persona)) as stage:
                session = stage.start()
                async with session.subscribe() as stream:
                    turn_id = session.begin_turn("A room?")
                    won: list[str] = []
                    trial.aim(lambda: won.extend(session.cancel(turn_id)))
                    events = [event async for event in stream.until_commit(turn_id)]
                    trial.disarm()
            if server.connections:
                await server.left.wait()
        assert [len(payloads(events, kind)) for kind in (TurnFinal, TurnInterrupted, CommitFinal)] == [
            not won,
            bool(won),
            1,
        ]
        assert won or len(server.requests) == 2

    assert cancel_everywhere(scenario, orders=1, pairs=10).points > 20
