"""AG-UI runs: projected without a server, and read from one."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from footlights_transports.views.ag_ui.pure.laws import check_ag_ui
from footlights_transports.views.ag_ui.pure.position import Position
from footlights_transports.views.ag_ui.pure.projection import AgUiProjection
from tests.kit.peers.http_peer import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from footlights.authority import PendingApproval
    from footlights.events import StreamEvent
    from footlights_transports.views.ag_ui.pure.projection import AgUiEvent
    from tests.kit.peers.http_peer import House

Raw: TypeAlias = "dict[str, Any]"

THREAD, RUN = "bob#7", "run-1"


def project(
    events: Sequence[StreamEvent], after: Position | None = None, pending: Sequence[PendingApproval] = ()
) -> list[AgUiEvent]:
    """The run of a turn, after a position."""
    projection = AgUiProjection(THREAD, RUN, after or Position(events[0].turn_id))
    projection.pending = pending
    return [*projection.begin(0.0), *(each for event in events for each in projection.take(event, 0.0))]


def bodies(events: Iterable[AgUiEvent]) -> list[Raw]:
    return [each.body for each in events]


def lawful(events: list[Raw], *, complete: bool = True) -> list[Raw]:
    """The same events, checked against the laws."""
    assert check_ag_ui(events, complete=complete) == []
    return events


def types(events: Iterable[Raw]) -> list[str]:
    """The types of the events; CUSTOM by its name, and content only once in a row."""
    names = [each["name"].removeprefix("footlights.") if each["type"] == "CUSTOM" else each["type"] for each in events]
    return [name for name, before in zip(names, ["", *names], strict=False) if name != before]


def text(events: Iterable[Raw]) -> str:
    return "".join(each["delta"] for each in events if each["type"] == "TEXT_MESSAGE_CONTENT")


def asking(said: str, run_id: str = RUN, thread_id: str = THREAD, **more: object) -> Raw:
    """A RunAgentInput as AG-UI's client sends it."""
    messages = [{"id": "1", "role": "user", "content": said}]
    return {"threadId": thread_id, "runId": run_id, "messages": messages, "tools": [], "context": [], **more}


class Reader:
    """One stream over a connection of its own, which breaks when the reader is left."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._rest = b""
        self.status = answer.status
        self.events: list[Raw] = []
        self.last_id: str | None = None

    async def take(self) -> Raw | None:
        """The next event; None at the end."""
        while b"\n\n" not in self._rest:
            more = await self._answer.read()
            if not more:
                return None
            self._rest += more
        block, _, self._rest = self._rest.partition(b"\n\n")
        if block == b":":
            return await self.take()
        fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
        self.last_id = fields["id"]
        event: Raw = json.loads(fields["data"])
        self.events.append(event)
        return event

    async def take_until(self, kind: str) -> list[Raw]:
        """Everything so far, up to the next event of this type."""
        while (event := await self.take()) is not None and event["type"] != kind:
            pass
        assert event is not None
        return self.events

    async def take_all(self) -> list[Raw]:
        while await self.take() is not None:
            pass
        return self.events


@asynccontextmanager
async def running(
    port: int, agent: str, body: Raw, last_id: str | None = None, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[Reader]:
    """The stream of a run."""
    given = {"host": "localhost", "content-type": "application/json", **(headers or {})}
    if last_id is not None:
        given["last-event-id"] = last_id
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        answer = Answer(stream)
        await answer.ask("POST", f"/ag-ui/{agent}", given, json.dumps(body).encode())
        assert answer.status == 200
        yield Reader(answer)


async def whole_run(house: House, body: Raw, agent: str = "default", last_id: str | None = None) -> list[Raw]:
    async with running(house.listening.port, agent, body, last_id) as reader:
        return await reader.take_all()
