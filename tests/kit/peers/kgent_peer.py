"""A real server with a chat gateway on loopback, and clients that check the events they get."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import Factory, define, frozen
from trio_websocket import wrap_client_stream

from footlights import EventType, Stage, open_stage
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.kgent.gateway import KgentGateway
from footlights_transports.views.kgent.pure.templates import STANDARD_TEMPLATES
from footlights_transports.views.kgent.template_workloads import with_templates
from footlights_transports.views.kgent.view import KgentView
from footlights_transports.views.native.view import NativeView
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from trio_websocket import WebSocketConnection

    from footlights import BudgetConfig, Limits
    from footlights.models.model import Model
    from footlights.tools.tool import Tool
    from footlights_transports.access.policy import AccessPolicy
    from footlights_transports.server.listening import Listening
    from footlights_transports.views.base.view import Mount
    from footlights_transports.views.kgent.gateway import Keeper
    from footlights_transports.views.kgent.pure.settings import ChatFluxConfig

ASKED = "What should I focus on?"
ANSWERED = "The pattern I notice is that you're drawn to compression..."
TOKENS = {"ann": "a-token-of-anns-own-here", "bob": "a-token-of-bobs-own-here"}
PATIENCE = 60.0
"""Seconds, for a test that would hang otherwise."""


@frozen
class ChatHouse:
    """A stage, its gateway, and a server in front of them."""

    stage: Stage
    access: SessionAccess
    gateway: KgentGateway
    listening: Listening
    stop: Callable[[], None]
    """Cancel the server."""
    stopped: trio.Event


class KnownGateway(KgentView):
    """The view, which shows its gateway."""

    gateway: KgentGateway

    def mount(self, access: SessionAccess) -> Mount:
        mount = super().mount(access)
        gateway = getattr(mount.run, "__self__", None)
        assert isinstance(gateway, KgentGateway)
        self.gateway = gateway
        return mount


@asynccontextmanager
async def open_chat_house(
    model: Model | None = None,
    config: ChatFluxConfig | None = None,
    *,
    policy: AccessPolicy | None = None,
    limits: Limits | None = None,
    budget: BudgetConfig | None = None,
    keeper: Keeper | None = None,
    tools: Iterable[Tool] = (),
    goodbye: float = 5.0,
    **stage_options: Any,
) -> AsyncGenerator[ChatHouse]:
    cast = standard_cast(model or ScriptedModel(lambda _: [Say(ANSWERED)]), tools=tools, budget=budget)
    cast = with_templates(cast, STANDARD_TEMPLATES)
    async with open_stage(cast, limits=limits, **stage_options) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, policy)
        view = KnownGateway(config, budget=budget, keeper=keeper)
        stopped, scope = trio.Event(), trio.CancelScope()

        async def run(task_status: trio.TaskStatus[Listening]) -> None:
            with scope:
                serve = partial(serve_ws, access, host="127.0.0.1", port=0, goodbye=goodbye)
                await serve(views=[NativeView(), view], task_status=task_status)
            stopped.set()

        listening = await nursery.start(run)
        with trio.fail_after(PATIENCE):
            yield ChatHouse(stage, access, view.gateway, listening, scope.cancel, stopped)
        scope.cancel()


@define(eq=False)
class Client:
    """One connection; `frames` is everything received."""

    socket: WebSocketConnection
    frames: list[dict[str, Any]] = Factory(list[dict[str, Any]])

    async def send(self, content: object = ASKED, **data: object) -> None:
        """Send a message."""
        await self.send_raw({"action": "message", "version": "1.0.0", "data": {"content": content, **data}})

    async def send_raw(self, document: object) -> None:
        await self.socket.send_message(orjson.dumps(document).decode())

    async def receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = orjson.loads(await self.socket.get_message())
        self.frames.append(frame)
        return frame

    def told(self, correlation_id: str | None) -> list[dict[str, Any]]:
        """The frames of one dialogue so far."""
        return [each for each in self.frames if each["payload"]["correlation_id"] == correlation_id]

    async def hear(self, correlation_id: str | None, after: int = 0) -> list[dict[str, Any]]:
        """Receive a dialogue to its end, and check it."""
        while not any(each["event_type"] == "done" for each in self.told(correlation_id)):
            await self.receive()
        return lawful(self.told(correlation_id), after)

    async def refusal(self, correlation_id: str | None = None) -> dict[str, Any]:
        """Receive the error of a message that began no dialogue."""
        error, done = await self.hear(correlation_id)
        assert done["payload"]["total_chunks"] == 0
        payload: dict[str, Any] = error["payload"]
        assert payload["correlation_id"] == correlation_id
        return payload


async def wait_said(house: ChatHouse) -> None:
    """Wait until the only session has emitted text in an open turn."""
    ((_, session),) = house.access.open_sessions()
    async with session.subscribe() as stream:
        async for event in stream:
            if event.event_type is EventType.TOKEN_DELTA:
                return


def lawful(frames: list[dict[str, Any]], after: int = 0) -> list[dict[str, Any]]:
    assert all(each.keys() == {"event_type", "payload", "sequence", "timestamp"} for each in frames)
    assert [each["sequence"] for each in frames] == list(range(after + 1, after + 1 + len(frames)))
    assert [each["event_type"] for each in frames].count("done") == 1
    assert frames[-1]["event_type"] == "done"
    for message in only(frames, "message") if not after else []:
        assert message["content"] == text(frames)
    return frames


def only(frames: list[dict[str, Any]], event_type: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in frames if each["event_type"] == event_type]


def text(frames: list[dict[str, Any]]) -> str:
    return "".join(each["content"] for each in only(frames, "chunk"))


def connect(house: ChatHouse, path: str, **options: Any) -> Any:
    """Connect a client."""
    return connect_to(house.listening.port, path, **options)


@asynccontextmanager
async def connect_to(
    port: int,
    path: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    subprotocols: tuple[str, ...] = (),
) -> AsyncGenerator[Client]:
    extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    if token is not None:
        extra.append((b"authorization", f"Bearer {token}".encode()))
    wrap = partial(wrap_client_stream, host="localhost", resource=path, subprotocols=subprotocols)
    async with (
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
        trio.open_nursery() as nursery,
    ):
        client = Client(await wrap(nursery, stream, extra_headers=extra, max_message_size=1 << 24))
        yield client
        await client.socket.aclose()
        nursery.cancel_scope.cancel()


def perturb(house: ChatHouse, query: str = "", **options: Any) -> Any:
    """Connect a sender."""
    return connect(house, f"/perturb/default{query}", **options)


def observe(house: ChatHouse, query: str = "", **options: Any) -> Any:
    """Connect an observer."""
    return connect(house, f"/observe/default{query}", **options)
