"""Case: one input to an otherwise quiet server, and a check of the answer against an RFC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from footlights_bench.attack.raw.sockets import BROKEN
from footlights_bench.attack.results import Result
from footlights_bench.attack.target import CannotAttack
from footlights_bench.attack.users import NotServed

if TYPE_CHECKING:
    from footlights_bench.attack.target import Target


@frozen
class Outcome:
    measured: str
    held: bool


Check: TypeAlias = Callable[["Target"], Awaitable[Outcome]]


@frozen
class Case:
    rule: str
    """The required answer, and where it is specified."""
    check: Check
    needs_token: bool = False
    """Whether the case is skipped for a server without tokens."""


async def run_case(name: str, case: Case, target: Target) -> Result:
    try:
        seen = await case.check(target)
    except (CannotAttack, NotServed, trio.TooSlowError, *BROKEN) as error:
        seen = Outcome(str(error) or type(error).__name__, held=False)
    failures = [] if seen.held else [f"Expected: {case.rule}. Seen: {seen.measured}."]
    return Result(name, case.rule, seen.measured, failures)
