"""Workload of the suite: turns that each move one coin from one purse to another.

Each turn has one intent, one rule and two changes in a world of sixteen purses. `Judge` makes the records with the
real `judge` and chains them as a committer does.
"""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import frozen

from footlights import Intent, IntentType
from footlights.authority import CommitRecord, JsonWorld, JudgeRequest, RuleBook, Ruling, accept, judge, patch, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority import World
    from footlights.events import JsonValue

    Purses: TypeAlias = dict[str, int]

SESSIONS = 64
"""Commits are spread over so many sessions, in turn."""

_PURSES = 16
_COINS = 1_000_000


def genesis() -> JsonWorld:
    document: dict[str, JsonValue] = {f"purse-{number:02}": _COINS for number in range(_PURSES)}
    return JsonWorld(document)


def payment(number: int) -> Intent:
    giver, taker = f"purse-{number % _PURSES:02}", f"purse-{(number + 7) % _PURSES:02}"
    return Intent(IntentType.TURN_FINALIZE, f"payment-{number}", {"from": giver, "to": taker})


def purses(world: Purses, intents: tuple[Intent, ...]) -> Ruling:
    after = dict(world)
    for intent in intents:
        order = cast("dict[str, str]", intent.payload)
        after[order["from"]] -= 1
        after[order["to"]] += 1
    if min(after.values()) < 0:
        return refuse("no_coin", "That purse is empty.")
    return accept(*(patch.replace(f"/{name}", coins) for name, coins in after.items() if coins != world[name]))


RULES = RuleBook({"purses": purses})


@frozen
class Batch:
    """The records of one append, and the world after them."""

    records: tuple[CommitRecord, ...]
    world: World


def requests(first: int = 1) -> Iterator[JudgeRequest]:
    """An endless sequence of turns of epoch 1, from this number on."""
    for number in count(first):
        session_id = f"s1-{number % SESSIONS + 1:06}"
        yield JudgeRequest(session_id, f"t1-{number:06}", None, (payment(number),))


class Judge:
    """Judges turns one after the other, starting from the genesis world."""

    def __init__(self) -> None:
        self._world: World = genesis()
        self._heads: dict[str, str] = {}
        self._requests = requests()

    def batch(self, size: int) -> Batch:
        return Batch(tuple(self._judged(request) for request in islice(self._requests, size)), self._world)

    def _judged(self, request: JudgeRequest) -> CommitRecord:
        judgement = judge(request, self._world, RULES, self._heads.get(request.session_id))
        self._world = judgement.world
        self._heads[request.session_id] = judgement.record.commit_digest
        return judgement.record
