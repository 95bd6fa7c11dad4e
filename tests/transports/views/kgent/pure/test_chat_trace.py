"""Laws of a trace: causes come first, independent turns commute, and the order is the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise, permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import RegistrationError
from footlights_transports.views.kgent.pure.trace import TraceMonoid, UnlawfulTrace
from tests.kit.views.chat_kit import turn

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_transports.views.kgent.pure.record import Turn


def trace_of(*turns: tuple[Turn, tuple[str, ...]]) -> TraceMonoid:
    trace = TraceMonoid()
    for each, causes in turns:
        trace.append_mut(each, causes)
    return trace


def names(trace: TraceMonoid) -> list[str]:
    return [each.id for each in trace.events]


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[Turn, tuple[str, ...]]]:
    """Turns, each with some earlier ones as causes, at arbitrary times."""
    made: list[tuple[Turn, tuple[str, ...]]] = []
    for number in range(draw(st.integers(0, 8))):
        before = [each.id for each, _ in made]
        causes = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        made.append((turn(f"t{number}", at=float(draw(st.integers(0, 3)))), tuple(causes)))
    return made


@pytest.mark.shows("gateway-67")
@given(programs())
def test_causal_ordering(program: list[tuple[Turn, tuple[str, ...]]]) -> None:
    places = {name: place for place, name in enumerate(names(trace_of(*program)))}
    assert len(places) == len(program)
    for each, causes in program:
        assert all(places[cause] < places[each.id] for cause in causes)


def test_independent_turns_commute() -> None:
    turns = [turn("a", at=3.0), turn("b", at=1.0), turn("c", at=1.0)]
    traces = [trace_of(*((each, ()) for each in order)) for order in permutations(turns)]
    assert all(first == second and first.events == second.events for first, second in pairwise(traces))
    assert names(traces[0]) == ["b", "c", "a"]


def test_turns_that_depend_on_each_other_do_not_commute() -> None:
    first, second = turn("a", at=2.0), turn("b", at=1.0)
    one, other = trace_of((first, ()), (second, ("a",))), trace_of((second, ()), (first, ("b",)))
    assert one != other
    assert names(one) == ["a", "b"], "its cause comes first, whatever the clock said"
    assert names(other) == ["b", "a"]
    assert one.depends_on("b") == {"a"}


def test_duplicate_ids_are_refused_and_change_nothing() -> None:
    trace = trace_of((turn("a", "first"), ()))
    with pytest.raises(UnlawfulTrace):
        trace.append_mut(turn("a", "second"))
    assert [each.content for each in trace.events] == ["first"]


def test_an_unknown_dependency_is_refused() -> None:
    trace = trace_of((turn("a"), ()))
    for causes in (("b",), ("a", "nobody"), ("b", "b")):
        with pytest.raises(UnlawfulTrace):
            trace.append_mut(turn("b"), causes)
    with pytest.raises(UnlawfulTrace):
        trace.depends_on("b")
    assert len(trace) == 1


def test_a_trace_with_a_limit_forgets_the_oldest_and_what_pointed_to_it() -> None:
    trace = TraceMonoid(max_turns=3)
    trace.append_mut(turn("a"))
    trace.append_mut(turn("b"), ["a"])
    trace.append_mut(turn("c"), ["b"])
    trace.append_mut(turn("d"), ["a", "c"])
    assert names(trace) == ["b", "c", "d"]
    assert [trace.depends_on(name) for name in "bcd"] == [frozenset(), {"b"}, {"c"}]


def test_a_trace_equals_only_traces_and_has_no_hash() -> None:
    assert trace_of((turn("a"), ())) != [turn("a")]
    with pytest.raises(TypeError):
        hash(TraceMonoid())


SCRIPT = """
from footlights_transports.views.kgent.pure.trace import TraceMonoid
from footlights_transports.views.kgent.pure.record import Turn
trace = TraceMonoid()
for number in range(40):
    causes = {f"t{number - 7}", f"t{number - 3}"} if number >= 7 else set()
    trace.append_mut(Turn(id=f"t{number}", content="", timestamp=float(-number % 5), source="", turn_type="SPEECH",
                          confidence=1.0, entropy_cost=0.0), causes)
print(" ".join(each.id for each in trace.events))
"""


def test_the_order_is_the_same_in_any_process_and_hash_seed(tmp_path: Path) -> None:
    script = tmp_path / "linear.py"
    script.write_text(SCRIPT)

    def order(seed: str) -> str:
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, str(script)], env=environ, check=True, capture_output=True
        ).stdout.decode()

    orders = {order(seed) for seed in ("0", "1", "4242")}
    assert len(orders) == 1
    assert len(orders.pop().split()) == 40


@pytest.mark.parametrize("max_turns", [0, -3])
def test_a_trace_of_size_zero_is_refused(max_turns: int) -> None:
    with pytest.raises(RegistrationError):
        TraceMonoid(max_turns)
