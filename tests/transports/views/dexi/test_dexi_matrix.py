"""Matrix of narrated runs: endpoint, policy, message, and stream or answer, with every event and its time."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import trio

from footlights import Limits
from tests.kit.peers.http_peer import open_house
from tests.kit.views.dexi_kit import lawful
from tests.kit.views.dexi_server import KEY, agency, answer_of, cancel_after, stream_of, timed

if TYPE_CHECKING:
    from trio.testing import MockClock

    Sequence: TypeAlias = list[tuple[Any, ...]]

ENDPOINTS = {"/api/chat": "deny", "/api/agents/clerk/invoke": "auto"}
STALL = Limits().stall_timeout
TALK = "Good evening."
WORK = "Search the shelves for rain."
SLOW = "Search the shelves with search_slowly."
BROKEN = "Search the shelves with search_broken."
LEAKY = "Search the shelves with search_leaky."
QUIET = "Search the shelves quietly."
RAISES = "Search the shelves and raise."
STALLS = "Search the shelves forever."


def chat(*words: str, at: float = 0.0, outcome: str = "completed") -> Sequence:
    return [
        (0.0, "mode", "chat"),
        *((at, "output_delta", each) for each in words),
        (at, "done", outcome),
    ]


WORDS = chat("Good evening.")
DENIED_WORDS = "I have not run anything. I can search the shelves if you allow it.\n\n"
DENIED = chat(DENIED_WORDS, "Good evening.")
DENIED_SLOW = [
    *chat(DENIED_WORDS)[:-1],
    (10.2, "output_delta", "At last."),
    (10.2, "done", "completed"),
]


CRASHED = "Why (tool_error): A tool crashed. The log says where."
RAISED = "Why (model_error): The model failed. The log says where."
STALLED = "Why (stall_timeout): The model or a tool was silent for longer than it may be (stall_timeout)."
DENIED_RAISES = chat(DENIED_WORDS, f"There is no whole answer. {RAISED}", outcome="failed")
DENIED_STALLS = [
    *chat(DENIED_WORDS, "Well")[:-1],
    (STALL, "output_delta", f"\n\nThere is no whole answer. {STALLED}"),
    (STALL, "done", "failed"),
]


def opening(who: str) -> Sequence:
    return [
        (0.0, "mode", "execution"),
        (
            0.0,
            "plan_narrative",
            f"{who} will search, with Search shelves, Search slowly, Search broken and Search leaky, and then answer.",
        ),
        (0.0, "step_start", "step-1", "Ask a model"),
        (0.0, "narration_delta", "step-1", "The model clerk was selected."),
        (0.0, "step_end", "step-1", "completed"),
    ]


def called(who: str, name: str, *beats: float) -> Sequence:
    """A run up to the call of a tool, with the heartbeats while the tool runs."""
    label = name.replace("_", " ").capitalize()
    return [
        *opening(who),
        (0.0, "output_delta", "Let me see."),
        (0.0, "step_start", "step-2", label),
        (0.0, "tool_start", "step-2", name, "Search the shelves."),
        (0.0, "narration_delta", "step-2", f"{label} was requested."),
        *((each, "heartbeat", "step-2", "waiting for the tool") for each in beats),
    ]


def ended(at: float, name: str, outcome: str, said: str, result: tuple[str, bool], artifacts: str = "") -> Sequence:
    """The end of a tool and its step, at this time."""
    return [
        (at, "tool_result", "step-2", name, *result),
        (at, "narration_delta", "step-2", f"{name.replace('_', ' ').capitalize()} {said}.{artifacts}"),
        (at, "step_end", "step-2", outcome),
    ]


def executed(who: str, name: str = "search_shelves", at: float = 0.0, *beats: float) -> Sequence:
    return [
        *called(who, name, *beats),
        (at, "artifact_read", "step-2", "page", "rain.md"),
        *ended(at, name, "completed", "finished", ("One page was found.", False), " Artifacts: 1 read."),
        (at, "output_delta", " That is all."),
        (
            at,
            "summary",
            (
                f"The run is completed. Done: {name.replace('_', ' ').capitalize()}. Steps: 2 completed. "
                "Artifacts: 1 read, 0 generated."
            ),
        ),
        (at, "done", "completed"),
    ]


def slow(who: str) -> Sequence:
    return executed(who, "search_slowly", 10.2, 2.4, 4.8, 7.2, 9.6)


def broken(who: str) -> Sequence:
    return [
        *called(who, "search_broken"),
        *ended(0.0, "search_broken", "failed", "failed", ("The tool failed: tool_error.", False)),
        (
            0.0,
            "summary",
            (
                f"The run failed, and nothing was committed. {CRASHED} "
                "Not done: Search broken (failed). Steps: 1 completed, 1 failed."
            ),
        ),
        (0.0, "done", "failed"),
    ]


def leaky(who: str) -> Sequence:
    return [
        *called(who, "search_leaky"),
        *ended(0.0, "search_leaky", "completed", "finished", ("The key is [redacted].", True)),
        (0.0, "output_delta", " That is all."),
        (0.0, "summary", "The run is completed. Done: Search leaky. Steps: 2 completed."),
        (0.0, "done", "completed"),
    ]


def canceled(who: str) -> Sequence:
    result = ("The tool was canceled; it had no side effects.", False)
    return [
        *called(who, "search_slowly", 2.4),
        *ended(3.0, "search_slowly", "canceled", "was canceled", result),
        (
            3.0,
            "summary",
            (
                "The run was canceled, and nothing was committed. "
                "Not done: Search slowly (was canceled). Steps: 1 completed, 1 canceled."
            ),
        ),
        (3.0, "done", "canceled"),
    ]


def forced_talk(who: str) -> Sequence:
    plan = f"{who} will prepare an answer. If a tool is run, it is shown as a step."
    return [
        (0.0, "mode", "execution"),
        (0.0, "plan_narrative", plan),
        *opening(who)[2:],
        (0.0, "output_delta", "Good evening."),
        (0.0, "summary", "The run is completed. No tool was run. Steps: 1 completed."),
        (0.0, "done", "completed"),
    ]


def quiet(who: str) -> Sequence:
    return [
        *opening(who)[:-1],
        *((each, "heartbeat", "step-1", "waiting for the model") for each in (2.4, 4.8, 7.2, 9.6)),
        (10.2, "step_end", "step-1", "completed"),
        (10.2, "output_delta", "At last."),
        (10.2, "summary", "The run is completed. No tool was run. Steps: 1 completed."),
        (10.2, "done", "completed"),
    ]


def raises(who: str) -> Sequence:
    return [
        *opening(who)[:-1],
        (0.0, "narration_delta", "step-1", RAISED),
        (0.0, "step_end", "step-1", "failed"),
        (0.0, "summary", f"The run failed, and nothing was committed. {RAISED} No tool was run. Steps: 1 failed."),
        (0.0, "done", "failed"),
    ]


def stalls(who: str) -> Sequence:
    beat_times = [round(2.4 * beat, 1) for beat in range(2, int(STALL / 2.4) + 1)]
    return [
        *opening(who),
        (0.0, "output_delta", "Well"),
        (2.4, "step_start", "step-2", "Prepare the answer"),
        *((each, "heartbeat", "step-2", "waiting for the model") for each in beat_times),
        (STALL, "narration_delta", "step-2", STALLED),
        (STALL, "step_end", "step-2", "failed"),
        (
            STALL,
            "summary",
            f"The run failed, and nothing was committed. {STALLED} No tool was run. Steps: 1 completed, 1 failed.",
        ),
        (STALL, "done", "failed"),
    ]


Row: TypeAlias = "tuple[str, str | None, str, bool, bool, Sequence]"


def rows() -> list[Row]:
    """Endpoint, policy, message, whether it streams, whether it is canceled after 3 s, and the events."""
    table: list[Row] = []
    for endpoint, policy, streaming in product(ENDPOINTS, (None, "deny", "auto", "force"), (True, False)):
        who = "The agent" if endpoint == "/api/chat" else "clerk"
        allowed = policy or ENDPOINTS[endpoint]
        executes = allowed != "deny"
        table += [
            (endpoint, policy, TALK, streaming, False, forced_talk(who) if allowed == "force" else WORDS),
            (endpoint, policy, WORK, streaming, False, executed(who) if executes else DENIED),
            (endpoint, policy, SLOW, streaming, False, slow(who) if executes else DENIED_SLOW),
            (endpoint, policy, BROKEN, streaming, False, broken(who) if executes else DENIED),
            (endpoint, policy, LEAKY, streaming, False, leaky(who) if executes else DENIED),
            (endpoint, policy, QUIET, streaming, False, quiet(who) if executes else DENIED_SLOW),
            (endpoint, policy, RAISES, streaming, False, raises(who) if executes else DENIED_RAISES),
            (endpoint, policy, STALLS, streaming, False, stalls(who) if executes else DENIED_STALLS),
        ]
        cut = [*chat(DENIED_WORDS)[:-1], (3.0, "done", "canceled")]
        table.append((endpoint, policy, SLOW, streaming, True, canceled(who) if executes else cut))
    return table


def _name(row: Row) -> str:
    endpoint, policy, message, streaming, cancels, _ = row
    kinds = {
        TALK: "talk",
        WORK: "work",
        SLOW: "silent",
        BROKEN: "failing",
        LEAKY: "secret",
        QUIET: "silent model",
        RAISES: "failing model",
        STALLS: "stalled model",
    }
    how = "stream" if streaming else "answer"
    return f"{endpoint.split('/')[-1]}-{policy}-{'cancel' if cancels else kinds[message]}-{how}"


ROWS = rows()


def test_the_matrix_is_complete() -> None:
    assert len(ROWS) == 144
    assert len({_name(row) for row in ROWS}) == len(ROWS)


@pytest.mark.shows("narration-1", "narration-8", "narration-24", "narration-30", "narration-32", "narration-33")
@pytest.mark.shows("narration-44", "narration-45", "narration-47", "narration-55", "narration-124")
@pytest.mark.parametrize("row", ROWS, ids=map(_name, ROWS))
async def test_every_row_has_its_exact_sequence_of_events(row: Row, quiet_clock: MockClock) -> None:
    endpoint, policy, message, streaming, cancels, expected = row
    body: dict[str, object] = {"message": message}
    if policy is not None:
        body["execution_policy"] = policy
    async with open_house(cast=agency()) as house, trio.open_nursery() as nursery:
        if cancels:
            nursery.start_soon(cancel_after, house, 3, "t1-000001.s1-000001")
        read = stream_of if streaming else answer_of
        events = lawful(await read(house.client, endpoint, body))
    assert timed(events) == expected
    assert KEY not in str(events)
