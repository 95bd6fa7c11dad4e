"""What the ids that a stage gives out say: the epoch that gave them, and a number that counts up within it.

So the turns of one session have an order, and everybody who knows their ids knows it.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SESSION_ID = re.compile(r"s(\d{1,18})-\d{1,18}")
_TURN_ID = re.compile(r"t([1-9]\d{0,17})-(\d{6,18})")

MIN_DIGITS = 6
MAX_DIGITS = 18
_LONGEST = 2 * MAX_DIGITS + 2


def turn_id(epoch: int, number: int) -> str:
    """The id of a turn. Number 0 is given to none: in a cursor it stands before the first."""
    return f"t{epoch}-{number:0{MIN_DIGITS}d}"


def epoch_of_session(session_id: str) -> int | None:
    """The epoch that numbered this session; None if it has a name of the host's."""
    match = _SESSION_ID.fullmatch(session_id)
    return None if match is None else int(match[1])


def epoch_and_number(of_turn: str) -> tuple[int, int] | None:
    """Which epoch gave out this id, as which of its turns; None if none can have."""
    return _read(of_turn) if len(of_turn) <= _LONGEST else None


@lru_cache(maxsize=1024)  # whoever follows a session asks about the same few, again and again
def _read(of_turn: str) -> tuple[int, int] | None:
    match = _TURN_ID.fullmatch(of_turn)
    if match is None:
        return None
    epoch, number = int(match[1]), int(match[2])
    return (epoch, number) if of_turn == turn_id(epoch, number) else None


def in_order(of_turn: str) -> tuple[int, int]:
    """A key to sort the turns of a session by; what is no id of ours comes first."""
    return epoch_and_number(of_turn) or (0, 0)


def is_before_all(of_turn: str, epoch: int) -> bool:
    """Whether this is the id that stands before all turns of that epoch or an earlier one."""
    of_epoch, number = epoch_and_number(of_turn) or (0, 1)
    return number == 0 and of_epoch <= epoch
