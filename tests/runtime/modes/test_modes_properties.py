"""Properties of mode decisions, for any message."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import Mode
from footlights.modes import (
    Activity,
    Assistance,
    Candidate,
    Condition,
    Confirmation,
    ExecutionPolicy,
    IntentKind,
    decide,
    detect,
    feature_named,
)
from footlights.modes.rules import VETOES
from footlights.modes.weights import standard_weights
from tests.kit.labelled_intents import HELD_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from footlights import JsonValue

MESSAGES = [str(each["text"]) for each in HELD_OUT]
WORDS = sorted({word for message in MESSAGES for word in message.split()})

anything = st.text(st.characters(exclude_categories=()), max_size=200)
half_sense = st.lists(st.sampled_from([*WORDS, *",.;:!?\"'`()“”", "no tools", "never mind"]), max_size=40).map(" ".join)
messages = st.one_of(anything, half_sense, st.sampled_from(MESSAGES))
spaces = st.text(" \t\n\r\u00a0\u2003", min_size=1, max_size=3)

RULES = {"rule.ban", "rule.others", "rule.about", "rule.thought", "rule.taken_back", *VETOES}
WEIGHTS = standard_weights()
VOCABULARY = {
    *RULES,
    *(f"{WEIGHTS.version}:{line}" for line in WEIGHTS.lines.values()),
    *(str(value) for kind in (Activity, Assistance, Candidate, Condition, Confirmation, IntentKind) for value in kind),
    *(str(value) for kind in (ExecutionPolicy, Mode) for value in kind),
}


def strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


@pytest.mark.shows("narration-36", "narration-64")
@given(messages, st.sampled_from(ExecutionPolicy))
def test_the_record_is_deterministic_and_holds_only_ids(message: str, policy: ExecutionPolicy) -> None:
    document = decide(message, policy).document
    assert document == decide(message, policy).document
    assert set(strings(document)) <= VOCABULARY


@pytest.mark.shows("narration-6", "narration-48", "narration-50", "narration-51")
@given(messages)
def test_deny_never_executes_and_force_always_does(message: str) -> None:
    assert decide(message, ExecutionPolicy.DENY).mode is Mode.CHAT
    assert decide(message, ExecutionPolicy.FORCE).mode is Mode.EXECUTION
    auto = decide(message, ExecutionPolicy.AUTO)
    assert {decide(message, policy).candidate for policy in ExecutionPolicy} == {auto.candidate}
    assert (auto.mode is Mode.EXECUTION) == (auto.candidate is Candidate.EXECUTION)


@pytest.mark.shows("narration-43")
@given(messages)
def test_execution_has_a_score_and_a_condition_and_chat_has_neither_nor_a_reason_to_ask(message: str) -> None:
    decision = decide(message, ExecutionPolicy.AUTO)
    executes = decision.candidate is Candidate.EXECUTION
    assert bool(decision.conditions) == bool(decision.intent.activities) == executes
    assert not executes or (decision.intent.score or 0) > 0
    assert executes or decision.confirmation is None


@pytest.mark.shows("narration-37")
@given(messages)
def test_the_features_of_a_record_have_names_and_the_strongest_come_first(message: str) -> None:
    features = detect(message).features
    weights = [abs(WEIGHTS.of["work"][feature_named(each)]) for each in features]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) <= 5


@given(st.one_of(half_sense, st.sampled_from(MESSAGES)), st.data())
def test_spacing_and_capitals_make_no_difference(message: str, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from([str.upper, str.lower, str.title, str.swapcase]))
    # "Don'T" and the like: title() is only asked about words that it leaves whole.
    changed = message if change is str.title and "'" in message else change(message)
    spaced = data.draw(spaces) + "".join(word + data.draw(spaces) for word in changed.split())
    assert detect(spaced) == detect(message)


@given(messages, st.sampled_from(["No tools.", "Don't run anything.", "Just chat."]))
def test_a_message_with_a_veto_never_executes(message: str, ban: str) -> None:
    assert detect(f"{ban} {message}").kind is IntentKind.CONVERSATIONAL


@pytest.mark.shows("narration-36")
def test_other_processes_with_other_hash_seeds_give_the_same_records() -> None:
    program = (
        "import sys, orjson; from footlights.modes import decide, ExecutionPolicy\n"
        "said = orjson.loads(sys.stdin.buffer.read())\n"
        "sys.stdout.buffer.write(orjson.dumps([decide(each, ExecutionPolicy.AUTO).document for each in said]))"
    )
    said = orjson.dumps(MESSAGES)
    here = orjson.dumps([decide(each, ExecutionPolicy.AUTO).document for each in MESSAGES])
    for seed in ("0", "1", "4711"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", program], input=said, env=env, capture_output=True, check=True)
        assert done.stdout == here


HOSTILE = [
    *("run a simulation and ", "and ", ", ", "\" ' ` “ ", "' ", "please ", "search ", "without ", "without running "),
    *("a.", "a'", "never mind ", "forget it search the ", "no tools ", "don't run it or, search. ", "(", "é", "start "),
    *("search what ", "how ", "either or ", "never mind. simulate "),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_message_twice_as_long_takes_twice_the_steps(unit: str) -> None:
    short = unit * (1_000 // len(unit))
    assert _steps(short * 2) < 2.5 * _steps(short) + 1_000


def _steps(message: str) -> int:
    """The number of lines executed."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        detect(message)
    finally:
        sys.settrace(before)
    return steps


def test_a_message_of_a_hundred_kilobytes_is_read() -> None:
    said = detect("reminders help people " * 4_500 + ". Simulate 200 of them.")
    assert said.activities == ("simulate",)
