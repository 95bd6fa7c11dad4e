"""Raw cases: one thing is sent to an otherwise quiet server, and the answer is compared with what an RFC says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from footlights_bench.attack.players import NotServed
from footlights_bench.attack.results import Result
from footlights_bench.attack.sockets import BROKEN
from footlights_bench.attack.target import CannotAttack

if TYPE_CHECKING:
    from footlights_bench.attack.target import Target


@frozen
class Seen:
    measured: str
    held: bool


Check: TypeAlias = Callable[["Target"], Awaitable[Seen]]


@frozen
class Case:
    rule: str
    """What must happen, and where that is written."""
    check: Check
    needs_token: bool = False
    """Whether it says nothing of a server without tokens."""


async def run_case(name: str, case: Case, target: Target) -> Result:
    try:
        seen = await case.check(target)
    except (CannotAttack, NotServed, trio.TooSlowError, *BROKEN) as error:
        seen = Seen(str(error) or type(error).__name__, held=False)
    failures = [] if seen.held else [f"Expected: {case.rule}. Seen: {seen.measured}."]
    return Result(name, case.rule, seen.measured, failures)
