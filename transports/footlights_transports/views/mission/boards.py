"""All mission boards of a server. When there are too many, whoever has the most loses the one not used for longest.

So nobody's boards are forgotten because of somebody who has more of them.
"""

from __future__ import annotations

from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from footlights.fair_share import first_of_the_heaviest
from footlights_transports.views.mission.board import MissionBoard

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.access.policy import User

MAX_BOARDS = 1_000
MAX_BYTES = 64_000_000
"""What all boards together may take."""

MissionName: TypeAlias = "tuple[User, str]"


class Boards:
    """Each mission's board, those used last at the end."""

    def __init__(self, forgotten: Callable[[MissionName], None]) -> None:
        """`forgotten` is told of every board that goes."""
        self._boards: OrderedDict[MissionName, MissionBoard] = OrderedDict()
        self._forgotten = forgotten
        self._last_seq = 0
        """No board that is forgotten came further."""

    def find(self, name: MissionName) -> MissionBoard | None:
        """The board, if there is one."""
        if name in self._boards:
            self._boards.move_to_end(name)
        return self._boards.get(name)

    def open(self, name: MissionName) -> MissionBoard:
        """The board, begun if it was not."""
        if name not in self._boards:
            self._boards[name] = MissionBoard(last_seq=self._last_seq)
            self.make_room()
        self._boards.move_to_end(name)
        return self._boards[name]

    def make_room(self) -> None:
        """Forget boards while there are too many, or too much is on them."""
        while len(self._boards) > MAX_BOARDS:
            self._forget(first_of_the_heaviest(dict.fromkeys(self._boards, 1), itemgetter(0)))
        while sum(board.size for board in self._boards.values()) > MAX_BYTES:
            sizes = {name: board.size for name, board in self._boards.items()}
            self._forget(first_of_the_heaviest(sizes, itemgetter(0)))

    def end(self) -> None:
        """Nothing more will be told on any of them."""
        for board in self._boards.values():
            board.end()

    def _forget(self, name: MissionName) -> None:
        board = self._boards.pop(name)
        self._last_seq = max(self._last_seq, board.last_seq)
        board.end()
        self._forgotten(name)
