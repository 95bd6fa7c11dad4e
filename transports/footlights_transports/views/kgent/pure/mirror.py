"""Mirror of a conversation: its newest turns without their content, for watchers that must not read it.

mirror.reflect(turn)             a plain call that never waits
watcher = mirror.join()
watcher.take()                   the kept reflections, then the new ones, each once and in order
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from typing import Any

    from footlights_transports.views.kgent.pure.record import Turn

Reflection: TypeAlias = "dict[str, Any]"
"""A turn as `to_dict` returns it, without its content."""

DEFAULT_KEEP = 256


class HolographicBuffer:
    """The newest `keep` reflections. The K-gent protocol calls them a holographic buffer.

    Raises `RegistrationError` if `keep` is less than 1.
    """

    def __init__(self, keep: int = DEFAULT_KEEP) -> None:
        if keep < 1:
            raise RegistrationError("A mirror keeps at least 1 reflection.")
        self._kept: deque[Reflection] = deque(maxlen=keep)
        self._count = 0

    def reflect(self, turn: Turn) -> None:
        """Keep everything of a turn but its content."""
        self._kept.append({name: value for name, value in turn.to_dict().items() if name != "content"})
        self._count += 1

    def join(self) -> Watcher:
        """Watch from the oldest reflection that is kept."""
        return Watcher(self, self._count - len(self._kept))

    def after(self, position: int) -> tuple[int, list[Reflection]]:
        """The kept reflections from this position on, and the position after them."""
        skip = max(position - (self._count - len(self._kept)), 0)
        return self._count, [dict(each) for each in islice(self._kept, skip, None)]


class Watcher:
    """One consumer of a mirror, at its own pace. It misses what the mirror drops before it is taken."""

    def __init__(self, mirror: HolographicBuffer, position: int) -> None:
        self._mirror = mirror
        self._position = position
        self.missed = 0
        """How many reflections it was too slow for."""

    def take(self) -> list[Reflection]:
        """All reflections since the last call."""
        newest, found = self._mirror.after(self._position)
        self.missed += newest - self._position - len(found)
        self._position = newest
        return found
