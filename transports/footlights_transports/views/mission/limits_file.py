"""Limits file: keeps the limits of callouts over restarts, as `saved` writes them.

It is written whenever the history has changed, in a thread; what changes during a write goes into the next one. A
process that is killed loses the changes of one write, which takes milliseconds. A file that cannot be read or written
is a warning in the log: callouts go on, and their limits begin anew with the next start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson
import trio

from footlights.failures import report
from footlights.private_files import create_for_owner_only
from footlights_transports.views.mission.pure.saved_limits import restored, saved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights_transports.views.mission.announcer import Announcer
    from footlights_transports.views.mission.pure.history import History

log = logging.getLogger("footlights.mission")


class LimitsFile:
    """The file of one announcer, whose history begins with what the file keeps."""

    def __init__(self, file: Path, announcer: Announcer, clock_ms: Callable[[], int]) -> None:
        self._file = file
        self._announcer = announcer
        self._clock_ms = clock_ms
        self._writing = trio.Lock()
        try:
            announcer.history = restored(orjson.loads(file.read_bytes()), clock_ms())
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            report(log, "the limits of callouts begin anew", error, logging.WARNING)

    async def run(self) -> None:
        """Write the history after each change, until cancelled."""
        while True:
            changed = self._announcer.changed
            await self.write()
            await changed.wait()

    async def write(self) -> None:
        """Write the history as it is now."""
        async with self._writing:
            try:
                await trio.to_thread.run_sync(_replace, self._file, self._announcer.history, self._clock_ms())
            except OSError as error:
                report(log, "the limits of callouts cannot be kept", error, logging.WARNING)


def _replace(file: Path, history: History, now: int) -> None:
    fresh = file.with_suffix(".new")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_for_owner_only(fresh)
    fresh.write_bytes(orjson.dumps(saved(history, now)))
    fresh.replace(file)
