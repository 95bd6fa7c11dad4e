"""Fair share: which owner gives way when a limit that all owners share is near.

An owner is the user of a token. A limit that is first come, first served belongs to the owner who floods: it takes the
last place, and all others are refused. There are two cures, because there are two kinds of places.

**Places that cannot be taken back** (connections, sessions, open turns, running tools) are given out with foresight.
`FairShare` has one rule: *an owner may take a place while it holds fewer places than are free.* From this follows,
without a timer, a queue or a reservation for users who may never come:

1. An owner alone holds at most half of the places, rounded up: with `h` held and `limit - h` free, it takes one more
   only if `h < limit - h`.
2. The last `k` free places go only to owners who hold fewer than `k`. So the very last one goes to an owner who holds
   none, and an owner who holds none is refused only when no place at all is left.
3. Whatever one owner does, half of the places, rounded down, stay out of its reach. So with a limit of at least 2, one
   owner who floods and one who has a single session, the second is always served; and it may go on to hold a quarter.
4. Owners who flood one after the other get a half, a quarter, an eighth, and so on; owners who flood at the same time
   get equal shares, because the one who holds more is refused first.

The price is that places stay empty while one of several owners asks for all of them; a limit is a number to choose, and
twice as high a one costs that owner nothing. Where there is only one owner there is nothing to divide, and it gets
everything. The rule is that of dynamic thresholds for buffers that ports of a switch share (Choudhury and Hahne, 1998).
To evict in place of refusing was rejected: a turn that runs cannot end at once, a session that is followed would end
for its followers, and a connection carries both.

**Things that are only kept** (chat feeds, mission boards, finished runs, the ends of closed sessions) can be forgotten
at any time. There a newcomer always finds a place, and `first_of_the_heaviest` says what goes for it: what stands first
among the things of the owner who keeps most. So nothing of an owner is forgotten because of another who keeps less.
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
    """The rule of one limit. Who holds how much is counted elsewhere."""

    what: str
    """The places, in the plural."""
    limit_name: str
    """That of a limit of one owner ends in `_per_user`."""
    limit: int
    """All places."""
    own_limit: int | None
    """What one owner may hold in any case."""
    is_divided: bool
    """Whether there are several owners."""

    def check(self, held: int, taken: int, *, is_exempt: bool = False) -> None:
        """Whether an owner who holds so many of the places that are taken may take another. Raises `Busy`.

        One that is exempt has no limit of its own, and shares with the others all the same.
        """
        free = self.limit - taken
        if free <= 0:
            raise Busy(f"There are {self.limit} {self.what} ({self.limit_name}).")
        if self.own_limit is not None and held >= self.own_limit and not is_exempt:
            raise Busy(f"You have {held} {self.what} ({self.limit_name}_per_user).")
        if self.is_divided and held >= free:
            raise Busy(f"You have {held} {self.what}, and the {free} left are for others ({self.limit_name}).")


def first_of_the_heaviest(weights: Mapping[_K, int], owner: Callable[[_K], Hashable]) -> _K:
    """The first thing among those of the owner whose things weigh most."""
    totals: Counter[Hashable] = Counter()
    for thing, weight in weights.items():
        totals[owner(thing)] += weight
    heaviest = max(totals, key=lambda each: totals[each])
    return next(thing for thing in weights if owner(thing) == heaviest)
