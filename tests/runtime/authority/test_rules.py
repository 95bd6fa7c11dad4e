from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from footlights.authority import Intent, Rule, RuleBook, Ruling, accept, patch, refuse
from footlights.errors import RegistrationError
from footlights.events import Issue

if TYPE_CHECKING:
    from collections.abc import MutableMapping


def first(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept()


def second(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    return refuse("never", "It cannot be.")


async def later(view: Any, intents: tuple[Intent, ...]) -> Ruling:
    return accept()


def test_a_book_keeps_the_order_in_which_rules_were_given() -> None:
    assert list(RuleBook([("z", first), ("a", second)])) == ["z", "a"]
    assert dict(RuleBook({"z": first, "a": second})) == {"z": first, "a": second}
    assert len(RuleBook()) == 0


def test_books_are_joined_by_their_items() -> None:
    one, other = RuleBook({"a": first}), RuleBook({"b": second})
    assert list(RuleBook([*one.items(), *other.items()])) == ["a", "b"]


def test_a_book_cannot_be_written_in() -> None:
    rules: dict[str, Rule] = {"a": first}
    book = RuleBook(rules)
    rules["b"] = second
    assert list(book) == ["a"]
    with pytest.raises(TypeError):
        cast("MutableMapping[str, Rule]", book)["b"] = second


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(RegistrationError):
        RuleBook([("a", first), ("a", first)])


@pytest.mark.parametrize("name", ["", "A", "1a", "_a", ".a", "a-b", "a b", "a\n", "é"])
def test_a_name_that_is_not_a_rule_name_is_refused(name: str) -> None:
    with pytest.raises(RegistrationError):
        RuleBook({name: first})


@pytest.mark.parametrize("name", ["a", "tavern.sell_ale", "a1._"])
def test_a_rule_name_is_lower_case_with_dots_and_underscores(name: str) -> None:
    assert list(RuleBook({name: first})) == [name]


@pytest.mark.parametrize("rule", [None, "first", later])
def test_what_is_not_a_plain_function_is_refused(rule: object) -> None:
    with pytest.raises(RegistrationError):
        RuleBook({"a": cast("Rule", rule)})


def test_a_ruling_accepts_with_changes_or_refuses_with_an_issue() -> None:
    op = patch.add("/a", 1)
    assert accept(op) == Ruling(changes=(op,), issues=())
    assert refuse("no_gold", "Too poor.", "call-1") == Ruling(issues=(Issue("no_gold", "Too poor.", "call-1"),))
