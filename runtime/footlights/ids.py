"""Ids of sessions and turns: each holds the epoch of its stage and a number that counts up within the epoch.

So the ids of turns alone give the order of the turns of a session.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SESSION_ID = re.compile(r"s(\d{1,18})-\d{1,18}")
_TURN_ID = re.compile(r"t([1-9]\d{0,17})-(\d{6,18})")

HOST = "@host"
"""The session id of the host's own commits. No session can have it, because it begins with no letter or digit."""
OPERATOR = "@operator"
"""That of the commits of `footlights world patch`."""

MIN_DIGITS = 6
MAX_DIGITS = 18
_LONGEST = 2 * MAX_DIGITS + 2


def turn_id(epoch: int, number: int) -> str:
    """The id of a turn. Turns count from 1; in a cursor, number 0 is the position before the first."""
    return f"t{epoch}-{number:0{MIN_DIGITS}d}"


def epoch_of_session(session_id: str) -> int | None:
    """The epoch in a session id; None if the host named the session."""
    match = _SESSION_ID.fullmatch(session_id)
    return None if match is None else int(match[1])


def epoch_and_number(of_turn: str) -> tuple[int, int] | None:
    """The epoch and number in a turn id; None if it is malformed."""
    return _read(of_turn) if len(of_turn) <= _LONGEST else None


@lru_cache(maxsize=1024)  # followers of a session parse the same few ids repeatedly
def _read(of_turn: str) -> tuple[int, int] | None:
    match = _TURN_ID.fullmatch(of_turn)
    if match is None:
        return None
    epoch, number = int(match[1]), int(match[2])
    return (epoch, number) if of_turn == turn_id(epoch, number) else None


def in_order(of_turn: str) -> tuple[int, int]:
    """Sort key for the turns of a session; malformed ids sort first."""
    return epoch_and_number(of_turn) or (0, 0)


def is_before_all(of_turn: str, epoch: int) -> bool:
    """Whether this id is the position before all turns of that epoch or of an earlier one."""
    of_epoch, number = epoch_and_number(of_turn) or (0, 1)
    return number == 0 and of_epoch <= epoch


def owner_of(session_id: str) -> str:
    """The owner of a session: a server with users prefixes session ids with `name:`."""
    return session_id.partition(":")[0]
