"""Timed processes: a program, a command, a first turn and a server, in milliseconds from their start.

They run in a folder of their own, which also keeps their bytecode, as an installed program has it. They do not have the
user's settings for Footlights.
"""

from __future__ import annotations

import re
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.lib.processes import clean_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

_HTTP = re.compile(rb" http://127\.0\.0\.1:([0-9]+)/v1$")
_SECONDS_TO_END = 30
EVERY_NAME = "import footlights; [getattr(footlights, name) for name in footlights.__all__]"


@frozen
class Opening:
    """The start of a server."""

    announced: float
    """Until it printed its addresses."""
    answered: float
    """Until it answered a request that was sent as soon as it had printed them."""


@frozen
class FirstTurn:
    committed: float
    """From the start of the process until it received `commit_final`."""
    played: float
    """The part after the imports."""


@frozen
class Runs:
    """Runs processes in `folder`, which keeps their bytecode. The first run in a new folder compiles it."""

    folder: Path

    def program(self, program: str) -> float:
        """`python -c PROGRAM`, until it has ended."""
        return self._whole("-c", program)

    def command(self, *arguments: str) -> float:
        """A command of `footlights`, until it has ended."""
        return self._whole("-m", "footlights_transports", *arguments)

    def first_turn(self) -> FirstTurn:
        began = perf_counter()
        with self._started("-m", "suites.start.first_turn") as process:
            line = _line(process)
            committed = _ms_since(began)
            if process.wait() != 0:
                raise AssertionError("The process of the first turn failed.")
        outcome, _, played = line.partition(b" ")
        if outcome != b"ok":
            raise AssertionError(f"The first turn was committed with the outcome {outcome.decode()}, not ok.")
        return FirstTurn(committed, float(played))

    def server(self) -> Opening:
        """`footlights serve` with default settings, on free ports and a new ledger."""
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
            # Without a timeout: with one, Popen polls instead of waiting.
            if process.wait() != 0:
                raise AssertionError(f"A timed process failed: {arguments[-1]}")
            return _ms_since(began)

    def _started(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = (sys.executable, *arguments)
        return subprocess.Popen(command, cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE)

    def _environment(self) -> Mapping[str, str]:
        kept = clean_environment()
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**kept, "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode")}


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError("A timed process ended without output.")
    return line.rstrip()


def _ask_health(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS_TO_END)
    try:
        connection.request("GET", "/healthz")
        if connection.getresponse().status != 200:
            raise AssertionError("The server is open, but /healthz does not answer with 200.")
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
