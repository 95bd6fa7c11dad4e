"""Turns: immutable, composable, and the same after a JSON round trip."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights_transports.views.kgent.pure.messages import InvalidMessage
from footlights_transports.views.kgent.pure.record import IDENTITY, Turn, TurnChain, TurnType
from tests.kit.views.chat_kit import turn

NUMBERS = st.floats(0, 1e12)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
TURNS = st.builds(
    Turn,
    id=TEXT,
    content=TEXT,
    timestamp=NUMBERS,
    source=TEXT,
    turn_type=st.sampled_from(TurnType),
    state_hash_pre=TEXT,
    state_hash_post=TEXT,
    confidence=st.floats(0, 1),
    entropy_cost=NUMBERS,
)
CHAINS = st.one_of(TURNS, st.lists(TURNS, max_size=3).map(lambda turns: TurnChain(tuple(turns)) >> IDENTITY))


@pytest.mark.shows("gateway-29")
@given(TURNS)
def test_turn_roundtrip_identity(each: Turn) -> None:
    assert Turn.from_dict(each.to_dict()) == each
    assert Turn.from_dict(json.loads(json.dumps(each.to_dict()))) == each


@pytest.mark.shows("gateway-1", "gateway-28")
def test_turn_serialization_roundtrip() -> None:
    sample = turn("t1-000001", "What matters most")
    serialized = sample.to_dict()
    deserialized = Turn.from_dict(serialized)
    assert deserialized == sample
    assert deserialized.id == sample.id
    assert deserialized.turn_type == sample.turn_type
    assert serialized == {
        "id": "t1-000001",
        "content": "What matters most",
        "timestamp": 1.0,
        "source": "kgent-soul",
        "turn_type": "SPEECH",
        "state_hash_pre": "before",
        "state_hash_post": "after",
        "confidence": 0.95,
        "entropy_cost": 0.1,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"turn_type": "SHOUT"},
        {"turn_type": ["SPEECH"]},
        {"content": None},
        {"timestamp": "now"},
        {"timestamp": True},
        {"timestamp": float("nan")},
        {"confidence": 1.1},
        {"confidence": -0.1},
        {"entropy_cost": -1},
        {"entropy_cost": float("inf")},
        {"more": 1},
    ],
)
def test_an_invalid_turn_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Turn.from_dict({**turn("a").to_dict(), **wrong})


def test_a_turn_with_a_field_missing_is_refused() -> None:
    for name in turn("a").to_dict():
        data = turn("a").to_dict()
        del data[name]
        with pytest.raises(InvalidMessage):
            Turn.from_dict(data)


@pytest.mark.shows("gateway-26")
def test_turn_immutability() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        turn("a").content = "other"  # type: ignore[misc]


@pytest.mark.shows("gateway-66")
@given(CHAINS, CHAINS, CHAINS)
def test_turn_composition_associative(a: Turn | TurnChain, b: Turn | TurnChain, c: Turn | TurnChain) -> None:
    assert (a >> b) >> c == a >> (b >> c)
    assert ((a >> b) >> c).content == a.content + b.content + c.content
    assert ((a >> b) >> c).entropy_cost == (a >> (b >> c)).entropy_cost


@given(CHAINS)
def test_turn_composition_has_an_identity(a: Turn | TurnChain) -> None:
    assert IDENTITY >> a == a
    assert a >> IDENTITY == a


def test_a_chain_sums_up_its_turns() -> None:
    whole = turn("a", "Good ", entropy=0.1, sure=0.9) >> turn("b", "evening", entropy=0.2, sure=0.4) >> turn("c", ".")
    assert isinstance(whole, TurnChain)
    assert whole.content == "Good evening."
    assert whole.entropy_cost == 0.4
    assert whole.confidence == 0.4
    assert [each.id for each in whole.turns] == ["a", "b", "c"]
    assert (IDENTITY.content, IDENTITY.entropy_cost, IDENTITY.confidence) == ("", 0.0, 1.0)


def test_a_new_turn_has_a_new_id() -> None:
    first, second = Turn.create_turn("a", "kgent-soul"), Turn.create_turn("a", "kgent-soul")
    assert first.id != second.id
    assert first.turn_type is TurnType.SPEECH
    assert first.timestamp > 0


def test_a_chain_of_one_is_unchanged_by_the_identity() -> None:
    one = TurnChain((Turn.create_turn("a", "somebody"),))
    assert one >> IDENTITY == one
    assert IDENTITY >> one == one
    assert (one >> one).turns == one.turns * 2


def test_only_turns_can_be_chained() -> None:
    for chained in (Turn.create_turn("a", "somebody"), IDENTITY):
        with pytest.raises(TypeError):
            _ = chained >> "b"


def test_the_type_of_a_turn_may_be_named() -> None:
    named: Any = "SILENCE"
    assert Turn.create_turn("", "somebody", named).to_dict()["turn_type"] == "SILENCE"
    unknown: Any = "SHOUT"
    with pytest.raises(InvalidMessage, match="turn_type"):
        Turn.create_turn("", "somebody", unknown)


def test_turns_may_have_content_of_another_type() -> None:
    turn: Turn[int] = Turn[int].create_turn(7, "somebody")
    assert turn.content == 7
