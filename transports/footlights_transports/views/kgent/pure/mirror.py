"""What was said, without the words: for whoever watches a flux and must not hear it.

mirror.reflect(turn)             a plain call; nobody is waited for and nobody is called
watcher = mirror.join()
watcher.take()                   what is kept, then what came since, each once and in order
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
"""A turn as `to_dict` has it, without its content."""

DEFAULT_KEEP = 256


class HolographicBuffer:
    """The newest `keep` reflections. Raises `RegistrationError` if that is none."""

    def __init__(self, keep: int = DEFAULT_KEEP) -> None:
        if keep < 1:
            raise RegistrationError("A mirror keeps at least 1 reflection.")
        self._kept: deque[Reflection] = deque(maxlen=keep)
        self._count = 0

    def reflect(self, turn: Turn) -> None:
        """Keep what there is to know of a turn besides what was said."""
        self._kept.append({name: value for name, value in turn.to_dict().items() if name != "content"})
        self._count += 1

    def join(self) -> Watcher:
        """Watch from the oldest reflection that is kept."""
        return Watcher(self)

    def after(self, place: int) -> tuple[int, list[Reflection]]:
        """The reflections from this place on, and the place after them. What is not kept is skipped."""
        skip = max(place - (self._count - len(self._kept)), 0)
        return self._count, [dict(each) for each in islice(self._kept, skip, None)]


class Watcher:
    """One who watches, at its own pace. What slid out of the mirror meanwhile was missed."""

    def __init__(self, mirror: HolographicBuffer) -> None:
        self._mirror = mirror
        newest, kept = mirror.after(0)
        self._place = newest - len(kept)
        self.missed = 0
        """How many it was too slow for."""

    def take(self) -> list[Reflection]:
        """All that was not taken yet."""
        newest, found = self._mirror.after(self._place)
        self.missed += newest - self._place - len(found)
        self._place = newest
        return found
