"""A view of your own: the subtitles of a session, one Server-Sent Event for each sentence.

    .venv/bin/python docs/examples/custom_view.py

It prints a line for your shell, which begins a session, follows its subtitles and says something.
"""

from collections import defaultdict
from functools import partial

import trio
from starlette.requests import Request
from starlette.responses import Response

from footlights import Detached, EventType, StreamEvent, Subscription, TokenDelta, open_stage
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.http.openapi import TEXT, answer
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import path_of
from footlights_transports.http.server import serve_http
from footlights_transports.http.sse import SseResponse
from footlights_transports.views.base.view import Mount, View, run_views
from footlights_transports.views.native.view import NativeView


class Subtitles:
    """The projection: a pure function of a turn's events, in steps."""

    def __init__(self) -> None:
        self._line = ""

    def take(self, event: StreamEvent) -> list[str]:
        if isinstance(event.payload, TokenDelta):
            *sentences, self._line = (self._line + event.payload.delta).replace(". ", ".\n").split("\n")
            return sentences
        if event.event_type in (EventType.TURN_FINAL, EventType.TURN_INTERRUPTED):
            rest, self._line = self._line, ""
            return [rest] if rest else []
        return []


class SubtitleStream(SseResponse):
    """The response writes what the projection shows. The base class does keep-alives, backpressure and shutdown."""

    def __init__(self, subscription: Subscription, keep_alive: float) -> None:
        super().__init__(keep_alive)
        self.subscription = self._events = subscription
        self._subtitles: defaultdict[str, Subtitles] = defaultdict(Subtitles)
        """One projection for each turn: turns may run at the same time."""

    @property
    def is_drained(self) -> bool:
        """Whether the stream may end at once when the server shuts down."""
        return self._events.is_empty

    async def next_text(self) -> bytes | None:
        try:
            batch = await self._events.receive_batch()
        except Detached:  # this client was too slow: its stream ends, and a browser connects again
            return None
        lines = [line for event in batch for line in self._subtitles[event.turn_id].take(event)]
        return b"".join(b"data: %b\n\n" % " ".join(line.splitlines()).encode() for line in lines) if batch else None


class SubtitleRoutes:
    """The routes: each handler is an operation of the OpenAPI document too."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    @Operation("GET", "/subtitles/{session_id}", {200: answer("Sentences.", TEXT, "text/event-stream")}, (404, 409))
    async def subtitles(self, request: Request, user: User) -> Response:
        """What the session says, sentence by sentence."""
        session = self._access.session(user, path_of(request)["session_id"])
        return SubtitleStream(session.subscribe(observer=True), self._access.policy.limits.keep_alive)


class SubtitleView(View):
    routes = (SubtitleRoutes,)

    def mount(self, access: SessionAccess) -> Mount:
        return Mount(view=self, handlers=[SubtitleRoutes(access)])


async def main() -> None:
    async with open_stage(tavern_cast(load_seconds=0.5)) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        mounts = await nursery.start(run_views, access, [NativeView(), SubtitleView()])
        listening = await nursery.start(partial(serve_http, access, mounts, host="127.0.0.1", port=0))
        url = f"http://127.0.0.1:{listening.port}"
        begin = f"""s=$(curl -s -X POST {url}/v1/sessions | cut -d'"' -f4); curl -sN {url}/subtitles/$s &"""
        print(f"""{begin} curl -s --json '{{"input": "A room?"}}' {url}/v1/sessions/$s/turns""", flush=True)


if __name__ == "__main__":
    trio.run(main)
