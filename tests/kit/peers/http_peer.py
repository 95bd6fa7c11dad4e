"""A real HTTP server on loopback, and a guest of it: commands as requests, events as Server-Sent Events."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import h11
import httpx2
import trio
from attrs import define, field, frozen

from footlights import CommitOutcome, Detached, EventType, SessionParams, Stage, StreamEvent, open_stage, wire
from footlights.stream.cursor import Cursor
from footlights_actors import Line, Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.client.protocol import refusal
from footlights_transports.client.session import write_params
from footlights_transports.server.metrics import Metrics
from footlights_transports.views.ag_ui.view import AgUiView
from footlights_transports.views.mission.view import MissionView
from footlights_transports.views.native.sse_cursor import read_cursor, write_cursor
from tests.kit.serving import serve_http, with_routes

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from footlights import Cast, Ledger, Limits, Model, TurnParams
    from footlights.models.model import Output, Prompt
    from footlights_transports.server.listening import Listening
    from footlights_transports.views.mission.missions import MissionSettings

TALK: tuple[Line, ...] = (Say("Good evening, my friend."),)


class CuedModel(ScriptedModel):
    """Says what it was told, word by word; before `~word` it waits until `word` is cued."""

    def __init__(self) -> None:
        super().__init__(lambda _: ())
        self._cues: dict[str, trio.Event] = {}

    def cue(self, word: str) -> None:
        self._cues.setdefault(word, trio.Event()).set()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        space = ""
        for word in prompt.user.split():
            if word.startswith("~"):
                await self._cues.setdefault(word[1:], trio.Event()).wait()
            yield space + word.removeprefix("~")
            space = " "


@frozen
class House:
    """A stage, and a server in front of it."""

    stage: Stage
    access: SessionAccess
    metrics: Metrics
    listening: Listening
    client: httpx2.AsyncClient
    stop: Callable[[], None]
    """Cancel the server."""
    stopped: trio.Event

    @property
    def address(self) -> str:
        return str(self.client.base_url)

    async def start(self, params: SessionParams | None = None) -> HttpGuest:
        body = None if params is None else {"params": write_params(params)}
        answer = await self.client.post("/v1/sessions", json=body)
        return HttpGuest(self.client, taken(answer, 201)["session_id"])


@asynccontextmanager
async def open_house(
    model: Model | None = None,
    *,
    policy: AccessPolicy | None = None,
    wire_limits: WireLimits | None = None,
    limits: Limits | None = None,
    ledger: Ledger | None = None,
    cast: Cast | None = None,
    tls: ssl.SSLContext | None = None,
    trusting: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
    goodbye: float = 5.0,
    mission: MissionSettings | None = None,
    ag_ui_grace: float = 5.0,
) -> AsyncGenerator[House]:
    """The server stops before the stage does."""
    cast = cast or standard_cast(model or ScriptedModel(lambda _: TALK))
    metrics = Metrics()
    measured = None if ledger is None else metrics.watching(ledger)
    stage_for = partial(open_stage, cast, limits=limits, ledger=measured, observe=metrics.turn_settled)
    async with stage_for() as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, policy or AccessPolicy(limits=wire_limits), watch=metrics)
        stopped, scope = trio.Event(), trio.CancelScope()

        async def run(task_status: trio.TaskStatus[Listening]) -> None:
            serve = partial(serve_http, access, host="127.0.0.1", port=0, tls=tls, metrics=metrics, goodbye=goodbye)
            with scope:
                await serve(
                    views=with_routes(MissionView(mission), AgUiView(ag_ui_grace, ag_ui_grace)), task_status=task_status
                )
            stopped.set()

        listening: Listening = await nursery.start(run)
        address = f"{'http' if tls is None else 'https'}://localhost:{listening.port}"
        async with httpx2.AsyncClient(
            base_url=address, headers=headers, verify=trusting or False, timeout=None
        ) as client:
            yield House(stage, access, metrics, listening, client, scope.cancel, stopped)
        scope.cancel()


def taken(answer: httpx2.Response, status: int = 200) -> Any:
    """What the answer says. Raises what a refusal says."""
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/json"
        raise refusal(answer.json()["error"])
    assert answer.status_code == status
    return answer.json() if answer.content else None


def refused(answer: httpx2.Response) -> tuple[int, str]:
    """The status and the code."""
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message"}
    return answer.status_code, answer.json()["error"]["code"]


@frozen
class Decision:
    commit_id: str | None
    commit_digest: str
    commit_outcome: CommitOutcome = field(converter=CommitOutcome)


@frozen
class HttpGuest:
    """A session as its player has it."""

    client: httpx2.AsyncClient
    session_id: str

    @property
    def path(self) -> str:
        return f"/v1/sessions/{quote(self.session_id)}"

    def turn_path(self, turn_id: str) -> str:
        return f"{self.path}/turns/{quote(turn_id or '-', safe='')}"

    async def begin_turn(self, said: str, params: TurnParams | None = None) -> str:
        body = {"input": said, "params": None if params is None else write_params(params)}
        # Not the client's own encoder: it cannot write what is not Unicode.
        answer = await self.client.post(
            f"{self.path}/turns", content=json.dumps(body), headers={"content-type": "application/json"}
        )
        turn_id: str = taken(answer, 202)["turn_id"]
        return turn_id

    async def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        path = self.path if turn_id is None else self.turn_path(turn_id)
        return tuple(taken(await self.client.post(f"{path}/cancel"))["canceled"])

    async def finalize(self, turn_id: str) -> Decision:
        return Decision(**taken(await self.client.post(f"{self.turn_path(turn_id)}/finalize")))

    async def heard(self, turn_id: str, seq: int) -> None:
        taken(await self.client.post(f"{self.turn_path(turn_id)}/heard", json={"seq": seq}), 204)

    async def close(self) -> None:
        taken(await self.client.delete(self.path), 204)

    def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()
    ) -> AbstractAsyncContextManager[Follower]:
        return self.follow(None if after is None else write_cursor(Cursor(dict(after), set(terminal_seen))))

    @asynccontextmanager
    async def follow(
        self, last_event_id: str | None = None, query: str = "", *, of: str = "events"
    ) -> AsyncGenerator[Follower]:
        """Over a connection of its own, that breaks when it is left: an HTTP client's pool would keep it."""
        headers = dict(self.client.headers) | {"host": self.client.base_url.netloc.decode()}
        headers["accept"] = "text/event-stream"
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id
        async with await trio.open_tcp_stream("localhost", self.client.base_url.port or 0) as stream:
            answer = Answer(stream)
            await answer.ask("GET", f"{self.path}/{of}{query}", headers)
            if answer.status != 200:
                raise refusal(json.loads(await answer.read_all())["error"])
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            follower = Follower(answer)
            await follower.read_block()
            yield follower


class Answer:
    """One request and its answer, byte by byte."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.status = 0
        self.headers: dict[str, str] = {}
        self._http = h11.Connection(h11.CLIENT)

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a request, and read the head of the answer."""
        pairs = [(name, value) for name, value in headers.items()]
        pairs += [("content-length", str(len(body)))] if body else []
        await self.stream.send_all(self._sent(h11.Request(method=method, target=path, headers=pairs)))
        if body:
            await self.stream.send_all(self._sent(h11.Data(body)))
        await self.stream.send_all(self._sent(h11.EndOfMessage()))
        head = await self._next()
        assert isinstance(head, h11.Response)
        self.status = head.status_code
        self.headers = {name.decode(): value.decode() for name, value in head.headers}

    async def read(self) -> bytes:
        """Some of the body; nothing at its end."""
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def read_all(self) -> bytes:
        body = b""
        while data := await self.read():
            body += data
        return body

    def _sent(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""

    async def _next(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            assert event is h11.NEED_DATA
            self._http.receive_data(bytes(await self.stream.receive_some()))


@define(eq=False)
class Follower:
    """One event stream."""

    _answer: Answer
    last_event_id: str = ""
    notices: list[dict[str, str]] = field(factory=list[dict[str, str]])
    comments: int = 0
    text: bytes = b""
    """All that came, as it came."""
    _read: int = 0

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> StreamEvent:
        while (block := await self.read_block()) is not None:
            if "event" in block:
                self._note(block)
            elif "data" in block:
                return wire.decode(block["data"])
        raise StopAsyncIteration

    def _note(self, block: dict[str, str]) -> None:
        told = json.loads(block["data"])
        assert told["notice"] == block["event"]
        assert "id" not in block
        self.notices.append(told)
        if block["event"] == "detached":
            raise Detached(told["reason"])

    async def read_block(self) -> dict[str, str] | None:
        """The fields up to the next blank line; None at the end. A comment is a block without any."""
        while (end := self.text.find(b"\n\n", self._read)) < 0:
            more = await self._answer.read()
            if not more:
                assert self._read == len(self.text), "a block was cut off"
                return None
            self.text += more
        lines = self.text[self._read : end].decode().split("\n")
        self._read = end + 2
        if lines == [":"]:
            self.comments += 1
            return {}
        fields = dict(line.split(": ", 1) for line in lines)
        self.last_event_id = fields.get("id", self.last_event_id)
        return fields

    @property
    def cursor(self) -> Mapping[str, int]:
        return read_cursor(self.last_event_id).after

    async def until_commit(self, turn_id: str) -> AsyncGenerator[StreamEvent]:
        async for event in self:
            yield event
            if (event.event_type, event.turn_id) == (EventType.COMMIT_FINAL, turn_id):
                break
