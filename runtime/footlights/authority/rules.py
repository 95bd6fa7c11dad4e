"""Rules: the host's functions that decide about the intents of a turn.

A rule is pure and synchronous. It sees the world as it was before the turn, without the changes of other rules, and
returns a `Ruling`: changes and artifacts, or issues that refuse the whole turn. Changes are made in the order of the
rule book.

    def open_door(world, intents):
        if world["door"] == "locked":
            return refuse("door_locked", "A locked door does not open.")
        return accept(patch.replace("/door", "open"))
"""

from __future__ import annotations

import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from attrs import field, frozen

from footlights.authority.intents import Intent
from footlights.authority.patch import PatchOp
from footlights.bad_return import BadReturn, check_plain
from footlights.errors import RegistrationError
from footlights.events import Issue

if TYPE_CHECKING:
    from footlights.authority.artifacts import Artifact


# `tuple[Issue, ...]` as a converter would take ten times as long as `tuple`.
def _changes(items: Iterable[PatchOp]) -> tuple[PatchOp, ...]:
    return tuple(items)


def _issues(items: Iterable[Issue]) -> tuple[Issue, ...]:
    return tuple(items)


def _artifacts(items: Iterable[Artifact]) -> tuple[Artifact, ...]:
    return tuple(items)


@frozen
class Ruling:
    """The decision of a rule. With any issue the turn fails closed, and the changes are ignored."""

    changes: tuple[PatchOp, ...] = field(default=(), converter=_changes)
    issues: tuple[Issue, ...] = field(default=(), converter=_issues)
    artifacts: tuple[Artifact, ...] = field(default=(), converter=_artifacts)


# The view is Any because its type depends on the host's world; a rule annotates the type that it expects.
Rule: TypeAlias = Callable[[Any, tuple[Intent, ...]], Ruling]
"""A plain function of the world's view and the turn's intents."""


def accept(*changes: PatchOp, artifacts: Iterable[Artifact] = ()) -> Ruling:
    """A ruling that accepts the turn, with these changes and artifacts."""
    for change in changes:
        if not isinstance(change, PatchOp):  # pyright: ignore[reportUnnecessaryIsInstance] - as below
            raise BadReturn(
                "accept() takes changes that patch made, one by one: accept(*changes) if they are in a list.", None
            )
    return Ruling(changes=changes, artifacts=tuple(artifacts))


_F = TypeVar("_F", bound=Rule)


def every_turn(rule: _F) -> _F:
    """Have this rule asked about every turn that is not interrupted, also about one that staged no intents."""
    rule.every_turn = True  # type: ignore[attr-defined]
    return rule


def wants_every_turn(rule: Rule) -> bool:
    return getattr(rule, "every_turn", False)


def refuse(code: str, message: str, ref: str | None = None) -> Ruling:
    """A ruling that refuses the turn.

    The ledger records all three arguments and clients see them; none may quote people or models. The code
    `turn_interrupted` is reserved for the runtime: a rule that uses it fails.
    """
    return Ruling(issues=(Issue(code, message, ref),))


_NAME = re.compile(r"[a-z][a-z0-9_.]*")


class RuleBook(Mapping[str, Rule]):
    """Named rules, in the order of their changes. Raises `RegistrationError` for invalid rules."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Mapping[str, Rule] | Iterable[tuple[str, Rule]] = ()) -> None:
        self._rules: dict[str, Rule] = {}
        pairs = cast("Mapping[str, Rule]", rules).items() if isinstance(rules, Mapping) else rules
        for name, rule in pairs:
            self._check(name, rule)
            self._rules[name] = rule

    def _check(self, name: str, rule: object) -> None:
        # A string enum member would not be a plain string in a record.
        if type(name) is not str or not _NAME.fullmatch(name):
            raise RegistrationError(f"The rule name {name!r} does not match {_NAME.pattern}.")
        if name in self._rules:
            raise RegistrationError(f"There are two rules named {name!r}.")
        check_plain(f"The rule {name!r}", rule, "world", "intents")

    def __getitem__(self, name: str) -> Rule:
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def items(self) -> ItemsView[str, Rule]:
        return self._rules.items()

    def __len__(self) -> int:
        return len(self._rules)
