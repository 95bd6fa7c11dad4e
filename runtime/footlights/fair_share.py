"""Fair share: division of a limit among owners, so that one owner cannot exhaust it for all others.

An owner is the user of a token. If a shared limit is first come, first served, an owner that floods takes the last
place and all others are refused. There are two remedies, because there are two kinds of places.

**Places that cannot be reclaimed** (connections, sessions, open turns, running tools) are allocated by `FairShare`.
It has one rule: *an owner may take a place while it holds fewer places than are free.* The rule needs no timer, no
queue and no reservation, and from it follows:

1. An owner alone holds at most half of the places, rounded up: with `h` held and `limit - h` free, it takes one more
   only if `h < limit - h`.
2. The last `k` free places go only to owners that hold fewer than `k`. So the last one goes to an owner that holds
   none, and an owner that holds none is refused only when no place is left.
3. Half of the places, rounded down, are always out of reach of a single owner. So with a limit of at least 2, an owner
   with one session is always served next to an owner that floods, and may go on to hold a quarter.
4. Owners that flood one after the other get a half, a quarter, an eighth, and so on; owners that flood at the same
   time get equal shares, because the one that holds more is refused first.

The cost is that places stay empty while one of several owners asks for all of them; doubling the limit compensates for
that. A single owner may take every place. The rule is that of dynamic thresholds for the shared buffers of a switch
(Choudhury and Hahne, 1998). Evicting instead of refusing was rejected: a running turn cannot end at once, closing a
session would end it for its subscribers, and a connection carries both.

**Retained data** (chat feeds, mission boards, finished runs, the ends of closed sessions) can be evicted at any time.
There a newcomer always finds a place, and `eviction_candidate` selects what is evicted: the first item of the owner
that retains most. So an owner never loses an item to an owner that retains more.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from attrs import frozen

from footlights.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

_K = TypeVar("_K")


@frozen
class FairShare:
    """The rule for one limit. The caller counts how much each owner holds."""

    what: str
    """The places, in the plural."""
    limit_name: str
    """The name of the setting; the setting for a single owner has the suffix `_per_user`."""
    limit: int
    """All places."""
    own_limit: int | None
    """The most places that one owner may hold."""
    is_divided: bool
    """Whether there are several owners."""

    def check(self, held: int, taken: int, *, owned: int | None = None, is_exempt: bool = False) -> None:
        """Raises `Busy` if an owner that holds `held` of the `taken` places may not take another.

        `owned` is what counts against `own_limit`, if that spans further places. An exempt owner has no `own_limit`,
        but still shares `limit` with the others.
        """
        free = self.limit - taken
        owned = held if owned is None else owned
        if free <= 0:
            raise Busy(f"There are {self.limit} {self.what} ({self.limit_name}).")
        if self.own_limit is not None and owned >= self.own_limit and not is_exempt:
            raise Busy(f"You have {owned} {self.what} ({self.limit_name}_per_user).")
        if self.is_divided and held >= free:
            raise Busy(f"You have {held} {self.what}, and the {free} left are for others ({self.limit_name}).")


def eviction_candidate(weights: Mapping[_K, int], owner: Callable[[_K], Hashable]) -> _K:
    """The first item of the owner whose items have the greatest total weight."""
    totals: Counter[Hashable] = Counter()
    for thing, weight in weights.items():
        totals[owner(thing)] += weight
    heaviest = max(totals, key=lambda each: totals[each])
    return next(thing for thing in weights if owner(thing) == heaviest)
