"""HTTP transport of the contract suite: plain requests, and a stream of Server-Sent Events."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2
import trio

from footlights import CommitOutcome, TurnParams, UnknownSession, open_stage, wire
from footlights.stream.cursor import Cursor
from footlights_transports import Commit
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.client.protocol import refusal
from footlights_transports.client.session import write_params
from footlights_transports.views.native.sse_cursor import read_cursor, write_cursor
from tests.kit.serving import serve_http
from tests.transports.contract.session_api import Followed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping

    from footlights import Cast, Limits, SessionParams, StreamEvent
    from tests.transports.contract.session_api import Decision, House


class SseStream(Followed):
    """The last id is all that a client has to keep."""

    def __init__(self, lines: AsyncIterator[str], after: Mapping[str, int] | None) -> None:
        super().__init__(after)
        self._lines = lines
        self.last_id = ""

    async def open(self) -> None:
        while not self.last_id:
            await self._block()

    @property
    def cursor(self) -> Mapping[str, int]:
        return read_cursor(self.last_id).after

    @property
    def terminal_seen(self) -> frozenset[str]:
        return frozenset(read_cursor(self.last_id).terminal_seen)

    async def _next(self) -> StreamEvent | None:
        while True:
            block = await self._block()
            if block.get("event") == "ended":
                return None
            assert "event" not in block
            if "data" in block:
                return wire.decode(block["data"])

    async def _block(self) -> dict[str, str]:
        fields: dict[str, str] = {}
        while line := await anext(self._lines):
            name, _, value = line.partition(": ")
            fields[name] = value
        self.last_id = fields.get("id", self.last_id)
        return fields


class HttpGuest:
    def __init__(self, client: httpx2.AsyncClient, session_id: str) -> None:
        self._client = client
        self.session_id = session_id
        self._path = f"/v1/sessions/{session_id}"

    async def begin_turn(self, said: str, params: TurnParams | None = None, *, request_id: str | None = None) -> str:
        body = {"input": said, "params": write_params(params or TurnParams())}
        headers = {} if request_id is None else {"idempotency-key": request_id}
        return str((await ask(self._client, "POST", f"{self._path}/turns", body, headers))["turn_id"])

    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        path = self._path if turn_id is None else self._turn(turn_id)
        return tuple((await ask(self._client, "POST", f"{path}/cancel"))["canceled"])

    async def finalize(self, turn_id: str) -> Decision:
        told = await ask(self._client, "POST", f"{self._turn(turn_id)}/finalize")
        return Commit(told["commit_digest"], CommitOutcome(told["commit_outcome"]), told["commit_id"])

    async def heard(self, turn_id: str, seq: int) -> None:
        await ask(self._client, "POST", f"{self._turn(turn_id)}/heard", {"seq": seq})

    async def close(self) -> None:
        with suppress(UnknownSession):  # it is closed
            await ask(self._client, "DELETE", self._path)

    @asynccontextmanager
    async def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()
    ) -> AsyncGenerator[SseStream, None]:
        headers = {} if after is None else {"last-event-id": write_cursor(Cursor(dict(after), set(terminal_seen)))}
        async with self._client.stream("GET", f"{self._path}/events", headers=headers, timeout=None) as response:
            if response.status_code != 200:
                await response.aread()
                check(response)
            lines = response.aiter_lines()
            try:
                stream = SseStream(lines, after)
                await stream.open()
                yield stream
            finally:
                await stop_reading(lines)

    def _turn(self, turn_id: str) -> str:
        return f"{self._path}/turns/{quote(turn_id, safe='')}"


class HttpHouse:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def start(self, params: SessionParams | None = None) -> HttpGuest:
        body = {} if params is None else {"params": write_params(params)}
        return HttpGuest(self._client, (await ask(self._client, "POST", "/v1/sessions", body))["session_id"])


async def ask(
    client: httpx2.AsyncClient,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    content = None if body is None else json.dumps(body)  # which can say more than JSON should
    sent = {"content-type": "application/json", **(headers or {})}
    response = await client.request(method, path, content=content, headers=sent)
    check(response)
    return response.json() if response.content else {}


async def stop_reading(lines: AsyncIterator[str]) -> None:
    """The library's generators do not close each other; a cancelled read goes through all of them."""
    with trio.CancelScope() as scope, suppress(httpx2.HTTPError):
        scope.cancel()
        async for _ in lines:
            pass


def check(response: httpx2.Response) -> None:
    if response.status_code >= 400:
        error = response.json()["error"]
        raise refusal(error)


@asynccontextmanager
async def http(cast: Cast, limits: Limits | None = None) -> AsyncGenerator[House, None]:
    async with open_stage(cast, limits=limits) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_http, SessionAccess(stage), host="127.0.0.1", port=0)
        listening = await nursery.start(serve)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{listening.port}", timeout=None) as client:
            yield HttpHouse(client)
        nursery.cancel_scope.cancel()
