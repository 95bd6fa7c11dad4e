"""A cast for narrated runs behind a real HTTP server, and clients that read its runs."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from footlights import Persona, SideEffects, Tool, ToolError, ToolReturn
from footlights.tools.artifact_notes import ArtifactNote
from footlights_actors import Call, Pause, Say, ScriptedModel, standard_cast
from footlights_transports.views.dexi.pure.events import seconds_of
from tests.kit.peers.http_peer import Answer
from tests.kit.views.dexi_kit import lawful

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    import httpx2

    from footlights import Cast, Prompt, ToolContext
    from footlights.events import JsonValue
    from footlights_actors import Line
    from tests.kit.peers.http_peer import House
    from tests.kit.views.dexi_kit import Raw

KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"
SILENCE = 10.2
"""Seconds; a little more than ten, so that nothing else happens at the same moment."""
WORK = {"message": "Search the shelves for rain."}
SLOW = {"message": "Search the shelves with search_slowly."}
INVOKE = "/api/agents/clerk/invoke"
TOKENS = {"ann": "a-token-for-this-test-only", "bob": "another-token-for-this-test"}


def agency() -> Cast:
    """The clerk runs the tool that the request names, and searches if it names none. Without tools it only talks."""
    return standard_cast(
        ScriptedModel(_clerk, model_id="clerk"),
        tools=[_tool(name) for name in ("search_shelves", "search_slowly", "search_broken", "search_leaky")],
        personas={"clerk": Persona(), "porter": Persona(tools=frozenset())},
    )


def _clerk(prompt: Prompt) -> Iterable[Line]:
    if "raise" in prompt.user:
        raise RuntimeError(KEY)
    if "quietly" in prompt.user:
        return [Pause(SILENCE), Say("At last.")]
    if "forever" in prompt.user:
        return [Say("Well"), Pause(1_000)]
    if not prompt.tools or "evening" in prompt.user:
        return [Pause(SILENCE), Say("At last.")] if "slowly" in prompt.user else [Say("Good evening.")]
    if prompt.rounds:
        return [Say(" That is all.")]
    named = [word.strip(".") for word in prompt.user.split() if word.startswith("search_")]
    return [Say("Let me see."), Call((named or ["search_shelves"])[0])]


def _tool(name: str) -> Tool:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
        if name == "search_slowly":
            await trio.sleep(SILENCE)
        if name == "search_broken":
            raise RuntimeError(KEY)
        if name == "search_leaky":
            return ToolReturn(KEY, f"The key is {KEY}.")
        if "refuse" in str(arguments):
            raise ToolError("No.")
        return ToolReturn("rain", "One page was found.", reads=(ArtifactNote("page", "rain.md"),))

    return Tool(name=name, description="Search the shelves.", run=run, cancel_safe=True, side_effects=SideEffects.NONE)


def timed(events: Iterable[Raw]) -> list[tuple[Any, ...]]:
    """Each event as a tuple: the tenths of a second since the first one, its type, and its fields."""
    began: float | None = None
    rows: list[tuple[Any, ...]] = []
    for event in events:
        at = seconds_of(event["timestamp"])
        began = at if began is None else began
        fields = [value for name, value in event.items() if name not in ("timestamp", "run_id")]
        rows.append((round(at - began, 1), *fields))
    return rows


async def stream_of(
    client: httpx2.AsyncClient, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> list[Raw]:
    """A whole stream, as httpx2 reads it; each event is named by its type and numbered by its id."""
    method = "GET" if body is None else "POST"
    first = int((headers or {}).get("last-event-id", -1)) + 1
    events: list[Raw] = []
    async with client.sse(path, method=method, json=body, headers=headers) as source:
        async for each in source:
            event: Any = each.json()
            assert each.event == event["type"]
            events.append(event)
            assert int(each.id) >= first + len(events) - 1
    return events


async def answer_of(client: httpx2.AsyncClient, path: str, body: Mapping[str, object]) -> list[Raw]:
    """The events of one answer, which says the same beside them."""
    answer = await client.post(path, json={**body, "stream": False})
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert list(said) == ["mode", "run_id", "message", "allow", "events"]
    events: list[Raw] = lawful(said["events"])
    assert (said["mode"], said["run_id"]) == (events[0]["mode"], events[0]["run_id"])
    assert said["message"] == "".join(each["content"] for each in events if each["type"] == "output_delta")
    return events


async def cancel_after(house: House, seconds: float, run_id: str) -> None:
    await trio.sleep(seconds)
    answer = await house.client.post(f"/api/runs/{run_id}/cancel")
    assert answer.json() == {"canceled": True}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


class Reader:
    """Reads one stream over a connection of its own, which breaks when the reader is left."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._rest = b""
        self.last_id = ""
        self.comments = 0

    async def take(self) -> Raw | None:
        """The next event; None at the end."""
        while True:
            block, found, rest = self._rest.partition(b"\n\n")
            if not found:
                more = await self._answer.read()
                if not more:
                    return None
                self._rest += more
                continue
            self._rest = rest
            if block == b":":
                self.comments += 1
                continue
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
            self.last_id = fields["id"]
            event: Raw = json.loads(fields["data"])
            return event

    async def take_until(self, kind: str) -> list[Raw]:
        events: list[Raw] = []
        while not events or events[-1]["type"] != kind:
            event = await self.take()
            assert event is not None
            events.append(event)
        return events


@asynccontextmanager
async def asking(
    house: House, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> AsyncGenerator[Reader]:
    async with await trio.open_tcp_stream("localhost", house.listening.port) as stream:
        answer = Answer(stream)
        await answer.ask(method, path, {"host": "localhost", **(headers or {})}, body)
        assert answer.status == 200
        yield Reader(answer)


def following(house: House, run_id: str, last_id: str | None = None) -> AbstractAsyncContextManager[Reader]:
    headers = {} if last_id is None else {"last-event-id": last_id}
    return asking(house, "GET", f"/api/runs/{run_id}/events", headers)


async def begin(house: House, body: Mapping[str, object], path: str = INVOKE) -> str:
    """Begin a run, disconnect at its first event, and return its id."""
    json_type = {"content-type": "application/json"}
    async with asking(house, "POST", path, json_type, json.dumps(body).encode()) as reader:
        first = await reader.take()
        assert first is not None
        run_id: str = first["run_id"]
        return run_id
