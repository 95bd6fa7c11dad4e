"""Processes that are timed from their start, in milliseconds, each in a folder where nothing else is.

They have the bytecode of everything, as an installed program has, also if this process is told to write none: it is
kept in the folder. They have none of this user's settings for Footlights.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

_HTTP = re.compile(rb" http://127\.0\.0\.1:([0-9]+)/v1$")
_SECONDS_TO_END = 30
EVERY_NAME = "import footlights; [getattr(footlights, name) for name in footlights.__all__]"


@frozen
class Opening:
    """Of a server."""

    announced: float
    """Until it said that it is open."""
    answered: float
    """Until it answered somebody who asked as soon as it had said so."""


@frozen
class FirstTurn:
    committed: float
    """From the start of the process until it had `commit_final` in hand."""
    played: float
    """The part of it after the imports."""


@frozen
class Runs:
    """All that is timed. `folder` keeps the bytecode; whoever runs first in a new one compiles it."""

    folder: Path

    def program(self, program: str) -> float:
        """The whole of `python -c`, until it has ended."""
        return self._whole("-c", program)

    def command(self, *arguments: str) -> float:
        """The whole of a command of `footlights`, until it has ended."""
        return self._whole("-m", "footlights_transports", *arguments)

    def first_turn(self) -> FirstTurn:
        began = perf_counter()
        with self._started("-m", "footlights_bench.start.first_turn") as process:
            line = _line(process)
            committed = _ms_since(began)
            if process.wait() != 0:
                raise AssertionError("The first turn did not end well.")
        outcome, _, played = line.partition(b" ")
        if outcome != b"ok":
            raise AssertionError("The first turn was not committed as it should be.")
        return FirstTurn(committed, float(played))

    def server(self) -> Opening:
        """`footlights serve` with nothing said but that any free ports will do, on a new ledger."""
        with TemporaryDirectory(dir=self.folder) as place:
            began = perf_counter()
            free = ("--ws-port", "0", "--http-port", "0", "--ledger", str(Path(place, "ledger")))
            with self._started("-m", "footlights_transports", "serve", *free) as process:
                try:
                    line = _line(process)
                    announced = _ms_since(began)
                    while not (found := _HTTP.search(line)):
                        line = _line(process)
                    _ask_health(int(found[1]))
                    return Opening(announced, _ms_since(began))
                finally:
                    _end(process)

    def _whole(self, *arguments: str) -> float:
        began = perf_counter()
        with self._started(*arguments) as process:
            # Without a timeout, which would have it look now and then and not wait.
            if process.wait() != 0:
                raise AssertionError(f"A process that is timed failed: {arguments[-1]}")
            return _ms_since(began)

    def _started(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = (sys.executable, *arguments)
        return subprocess.Popen(command, cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE)

    def _environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOOTLIGHTS_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**kept, "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode")}


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError("A process that is timed ended without a word.")
    return line.rstrip()


def _ask_health(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS_TO_END)
    try:
        connection.request("GET", "/healthz")
        if connection.getresponse().status != 200:
            raise AssertionError("The server is open, and not well.")
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()


def _ms_since(began: float) -> float:
    return (perf_counter() - began) * 1000
