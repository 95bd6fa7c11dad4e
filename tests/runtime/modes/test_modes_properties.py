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
    STANDARD_RULES,
    Activity,
    Assistance,
    Candidate,
    Condition,
    Confirmation,
    ExecutionPolicy,
    IntentKind,
    decide,
    detect,
)
from footlights.modes import detection as detecting
from footlights.modes.words import sentences
from tests.kit.labelled_intents import BUILT_WITH, HELD_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from footlights import JsonValue

MESSAGES = [prompt.message for prompt in (*BUILT_WITH, *HELD_OUT)]
WORDS = sorted({word for message in MESSAGES for word in message.split()})

anything = st.text(st.characters(exclude_categories=()), max_size=200)
half_sense = st.lists(st.sampled_from([*WORDS, *",.;:!?\"'`()“”", "no tools", "never mind"]), max_size=40).map(" ".join)
messages = st.one_of(anything, half_sense, st.sampled_from(MESSAGES))
spaces = st.text(" \t\n\r\u00a0\u2003", min_size=1, max_size=3)

VOCABULARY = {
    *(rule.id for rule in STANDARD_RULES.rules),
    *(veto.id for veto in STANDARD_RULES.vetoes),
    *(str(value) for kind in (Activity, Assistance, Candidate, Condition, Confirmation, IntentKind) for value in kind),
    *(str(value) for kind in (ExecutionPolicy, Mode) for value in kind),
}


def strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


@given(messages, st.sampled_from(ExecutionPolicy))
def test_the_record_is_deterministic_and_holds_only_ids(message: str, policy: ExecutionPolicy) -> None:
    document = decide(message, policy).document
    assert document == decide(message, policy).document
    assert set(strings(document)) <= VOCABULARY


@given(messages)
def test_deny_never_executes_and_force_always_does(message: str) -> None:
    assert decide(message, ExecutionPolicy.DENY).mode is Mode.CHAT
    assert decide(message, ExecutionPolicy.FORCE).mode is Mode.EXECUTION
    auto = decide(message, ExecutionPolicy.AUTO)
    assert (auto.mode is Mode.EXECUTION) == (auto.candidate is Candidate.EXECUTION)


@given(messages)
def test_execution_has_a_rule_and_a_condition_and_chat_has_neither_nor_a_reason_to_ask(message: str) -> None:
    decision = decide(message, ExecutionPolicy.AUTO)
    executes = decision.candidate is Candidate.EXECUTION
    assert bool(decision.intent.rule_ids) == bool(decision.conditions) == bool(decision.intent.activities) == executes
    assert executes or decision.confirmation is None


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
    short = unit * (4_000 // len(unit))
    assert _steps(short * 2) < 2.5 * _steps(short) + 1_000


def _steps(message: str) -> int:
    """The number of lines executed and words copied."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    counted = [_Counted(sentence) for sentence in sentences(message)]
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = detecting._Found()
        for sentence in counted:
            detecting._read_sentence(sentence, STANDARD_RULES, found)
        detect(message)
    finally:
        sys.settrace(before)
    return steps + sum(sentence.copied for sentence in counted)


class _Counted(list[str]):
    """Words that count how many of them were copied."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(place, slice):
            self.copied += len(found)
        return found


def test_a_message_of_a_hundred_kilobytes_is_read() -> None:
    assert detect("reminders help people " * 4_500 + ". Simulate 200 of them.").rule_ids == ("simulate.verb",)
