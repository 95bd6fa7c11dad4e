"""Child processes of a benchmark: started by module name, and spoken to in lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from trio.abc import ReceiveStream, SendStream

_CHUNK = 65_536


class JsonLines:
    """JSON values over a pair of streams, one on each line."""

    def __init__(self, sending: SendStream, receiving: ReceiveStream) -> None:
        self._sending = sending
        self._receiving = receiving
        self._buffer = b""

    async def send(self, value: object) -> None:
        await self._sending.send_all(json.dumps(value).encode() + b"\n")

    async def receive(self) -> Any:
        """The next value; None when the stream has ended."""
        while b"\n" not in self._buffer:
            data = await self._receiving.receive_some(_CHUNK)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (value := await self.receive()) is not None:
            yield value


@asynccontextmanager
async def open_module(module: str) -> AsyncGenerator[JsonLines]:
    """Run `python -m MODULE` and speak to it over its standard input and output. The process is killed on exit.

    The process has a session of its own. It receives no Ctrl-C of the terminal, and a kernel that shares processors
    by session gives it a share of its own.
    """
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield JsonLines(process.stdin, process.stdout)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await process.stdin.aclose()
            await process.stdout.aclose()


def clean_environment() -> dict[str, str]:
    """The environment of this process without the user's settings for Footlights."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FOOTLIGHTS_")}
