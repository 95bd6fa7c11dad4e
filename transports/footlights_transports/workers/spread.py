"""Spread of worlds over workers: which worker owns a world. It does not change while the server runs. Pure."""

from __future__ import annotations

from zlib import crc32

from attrs import frozen

from footlights_transports.worlds.names import MAIN


@frozen
class Spread:
    """The main world is the first worker's, named worlds follow in turn, and any other goes by its name."""

    workers: int
    names: tuple[str, ...]
    """The worlds that the settings name, as they were when the server started."""

    def owner(self, name: str) -> int:
        """The number of the worker that owns this world."""
        if name == MAIN:
            return 0
        if name in self.names:
            return (1 + self.names.index(name)) % self.workers
        return crc32(name.encode()) % self.workers
