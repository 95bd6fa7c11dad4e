"""Changes of the cast of an open stage: personas, tools and rules that are added, or taken away, together.

A change makes another cast, checked as a whole, or raises and changes nothing. Turns keep the cast with which they
began, so a change concerns the turns that begin after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from attrs import evolve

from footlights.authority.pending import APPROVALS
from footlights.authority.rules import RuleBook
from footlights.bad_return import check_kind
from footlights.errors import RegistrationError
from footlights.tools.tool import checked_tools

if TYPE_CHECKING:
    from collections.abc import Collection

    from footlights.authority.rules import Rule
    from footlights.cast import Cast
    from footlights.models.prompts import Persona
    from footlights.tools.tool import Tool

_T = TypeVar("_T")


def added(cast: Cast, personas: Mapping[str, Persona], tools: Iterable[Tool], rules: Mapping[str, Rule]) -> Cast:
    """The cast with these, after those that it has. Raises `RegistrationError`."""
    check_kind("The personas to add, by name,", personas, Mapping)
    check_kind("The rules to add, by name,", rules, Mapping)
    # The rules behind approvals were made so with the cast. One beside them would judge acts that are not approved yet.
    if rules and APPROVALS in cast.rules:
        raise RegistrationError("A cast with approvals takes no further rules: an act could escape its approval.")
    return evolve(
        cast,
        personas=_with("persona", cast.personas, personas.items()),
        tools=_with("tool", cast.tools, ((tool.name, tool) for tool in checked_tools(tools))),
        rules=RuleBook(_with("rule", cast.rules, rules.items())) if rules else cast.rules,
    )


def removed(cast: Cast, personas: Collection[str], tools: Collection[str], rules: Collection[str]) -> Cast:
    """The cast without these. Raises `RegistrationError`."""
    if rules and APPROVALS in cast.rules:
        raise RegistrationError("A cast with approvals keeps its rules.")
    return evolve(
        cast,
        personas=_without("persona", cast.personas, personas),
        tools=_without("tool", cast.tools, tools),
        rules=RuleBook(_without("rule", cast.rules, rules)) if rules else cast.rules,
    )


def _with(kind: str, members: Mapping[str, _T], new: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    known = dict(members)
    for name, member in new:
        if name in known:
            raise RegistrationError(f"There is a {kind} named {str(name)[:64]!r} already.")
        known[name] = member
    return known


def _without(kind: str, members: Mapping[str, _T], names: Collection[str]) -> dict[str, _T]:
    check_kind(f"A list of {kind}s", names, Iterable)
    if isinstance(names, str):  # it would be read as a list of letters
        raise RegistrationError(f"The {kind}s to remove are a list of names.")
    left = dict(members)
    for name in names:
        if left.pop(name, None) is None:
            raise RegistrationError(f"There is no {kind} named {str(name)[:64]!r}.")
    return left
