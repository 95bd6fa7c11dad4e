"""Theatre: one running server, and an audience that watches one session in every way that there is at once.

The ways are the native events, the Dexi run, the K-gent observer, the AG-UI run, the chat feed and the mission board.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import trio
from attrs import frozen

from footlights import CommitFinal, EventType, TokenDelta, TurnInterrupted
from footlights.testing import only as only_payload
from footlights_transports import load_config
from footlights_transports.server.serve import Opened, serve
from footlights_transports.views.ag_ui.pure.position import Position
from tests.kit.peers.kgent_peer import Client, connect_to, only, text
from tests.kit.served import open_peer
from tests.kit.story_game import BELL
from tests.kit.views import ag_ui_kit
from tests.kit.views.dexi_kit import lawful, output

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from footlights import Stage, StreamEvent
    from footlights_transports.worlds.hosted import HostedWorlds
    from tests.kit.peers.ws_peer import Peer

SESSION, STRANGER = "shared", "stranger"
LISTENING = {"session_state": "active", "context_tier": "1", "voice_mode": "normal"}
LAST = "And good night"
"""Said in a turn of its own: when that is told everywhere, all that came before it was told too."""

SETTINGS = '[cast]\nmake = "tests.kit.story_game:make"\n[server]\nws_port = 0\nhttp_port = 0\n'


@frozen(kw_only=True)
class Story:
    """One turn, as each of the six tells it."""

    turn_id: str
    events: list[StreamEvent]
    run: list[dict[str, Any]]
    kgent: list[dict[str, Any]]
    ag_ui: list[dict[str, Any]]
    chat: list[str]
    callouts: list[dict[str, Any]]

    @property
    def board(self) -> list[str]:
        """What the board says: what changed, and what of it."""
        lines = [each["text_payload"] for each in self.callouts]
        return [
            f"{each['what_changed'].partition(' -- ')[2]} {each['why_it_matters'].removeprefix('IMPACT: ')}"
            for each in lines
        ]

    @property
    def summary(self) -> str:
        """What the run says in the end."""
        summary: str = next(each["content"] for each in self.run if each["type"] == "summary")
        return summary

    @property
    def commit(self) -> CommitFinal:
        return only_payload(self.events, CommitFinal)

    @property
    def reason(self) -> str:
        """Why the turn ended early."""
        return only_payload(self.events, TurnInterrupted).reason

    def check(self) -> None:
        """What holds however a turn ends."""
        is_ok = self.commit.commit_outcome == "ok"
        assert is_ok is (self.run[-1]["outcome"] in ("completed", "waiting"))
        assert is_ok is bool(only(self.kgent, "message"))
        assert is_ok is (self.ag_ui[-1].get("outcome", {}).get("type") in ("success", "interrupt"))
        assert is_ok is ("The turn is committed." in self.chat)
        assert is_ok is not any(said.startswith("Nothing of the turn was committed.") for said in self.chat)
        assert is_ok is any("A turn is committed." in told for told in self.board)
        assert is_ok is not any("Nothing of it was committed" in told for told in self.board)
        said = "".join(each.payload.delta for each in self.events if isinstance(each.payload, TokenDelta))
        assert output(self.run) == text(self.kgent) == ag_ui_kit.text(self.ag_ui) == said
        for callout in self.callouts:
            assert callout["certainty_class"] == "confirmed"
            assert callout["evidence_refs"][0].startswith(f"turn:{self.turn_id}#")


@frozen
class Audience:
    """Everybody who watches one session."""

    session: str
    native: Peer
    kgent: Client
    http: httpx2.AsyncClient

    async def be_seated(self) -> None:
        """The feed and the board begin when they are first read."""
        assert await self._chat() == []
        assert await self._callouts() == []

    async def watch(
        self, said: str, cancel_at: EventType | None = None, approvals: Mapping[str, bool] | None = None
    ) -> Story:
        """A turn that the Dexi surface begins, and that the native one cancels when this happens."""
        told: list[tuple[str, list[dict[str, Any]]]] = []

        async def invoke() -> None:
            told.append(await self._dexi(said, approvals))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(invoke)
            if cancel_at is not None:
                while not (found := [each for each in self.native.events if each.event_type is cancel_at]):
                    await self.native.receive()
                if cancel_at is EventType.TOOL_CALL_STARTED:
                    await BELL.rung.wait()
                await self.native.ask("cancel", session_id=self.session, turn_id=found[0].turn_id)
        ((turn_id, run),) = told
        last_id, _ = await self._dexi(LAST)
        story = Story(
            turn_id=turn_id,
            events=await self.native.take_until(EventType.COMMIT_FINAL, turn_id),
            run=run,
            kgent=await self.kgent.hear(turn_id),
            ag_ui=await self._ag_ui(turn_id),
            chat=await self._chat_until(LAST),
            callouts=await self._callouts_until(turn_id, last_id),
        )
        story.check()
        return story

    async def world(self) -> dict[str, Any]:
        world: dict[str, Any] = (await self.http.get("/v1/world")).json()["world"]
        return world

    async def _dexi(self, said: str, approvals: Mapping[str, bool] | None = None) -> tuple[str, list[dict[str, Any]]]:
        """The id of the turn, and the whole run."""
        body: dict[str, Any] = {"message": said, "session_id": self.session, "stream": False}
        body |= {"execution_policy": "force"} | ({} if approvals is None else {"approvals": dict(approvals)})
        answer = (await self.http.post("/api/agents/default/invoke", json=body)).json()
        run = (await self.http.get(f"/api/runs/{answer['run_id']}")).json()
        return run["turn_id"], lawful(answer["events"])

    async def _ag_ui(self, turn_id: str) -> list[dict[str, Any]]:
        """The turn as a run, from its beginning."""
        port = self.http.base_url.port
        assert port is not None
        body = ag_ui_kit.asking("-", turn_id, self.session)
        async with ag_ui_kit.running(port, "default", body, str(Position(turn_id))) as reader:
            return ag_ui_kit.lawful(await reader.take_all())

    async def _chat_until(self, last: str) -> list[str]:
        """The feed before this is said."""
        while last not in (messages := await self._chat()):
            await trio.lowlevel.checkpoint()
        await self.http.delete(f"/v1/sessions/{self.session}/chat")
        assert await self._chat() == []  # a new feed, for the next story
        return messages[: messages.index(last)]

    async def _callouts_until(self, turn_id: str, last_id: str) -> list[dict[str, Any]]:
        """Those about a turn, once a later one is called out."""
        while not _about(last_id, callouts := await self._callouts()):
            await trio.lowlevel.checkpoint()
        return _about(turn_id, callouts)

    async def _chat(self) -> list[str]:
        messages = (await self.http.get(f"/v1/sessions/{self.session}/chat")).json()["messages"]
        return [each["content"] for each in messages]

    async def _callouts(self) -> list[dict[str, Any]]:
        answer = await self.http.get(f"/api/mission-board/{self.session}/events", params=LISTENING)
        assert answer.status_code == 200, answer.text
        return [each["payload"] for each in answer.json()["events"]]


def _about(turn_id: str, callouts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in callouts if each["event_id"].startswith(f"{turn_id}.")]


@frozen
class Theatre:
    """A server, and the stage in it."""

    opened: Opened
    stage: Stage

    @asynccontextmanager
    async def audience(self, session: str = SESSION) -> AsyncGenerator[Audience]:
        """Everybody who watches this session."""
        async with AsyncExitStack() as leaving:
            native = await leaving.enter_async_context(open_peer(self.opened.ws_port))
            base = f"http://127.0.0.1:{self.opened.http_port}"
            http = await leaving.enter_async_context(httpx2.AsyncClient(base_url=base, timeout=None))
            await native.ask("start", params={"session_id": session})
            await native.ask("subscribe", session_id=session)
            observing = connect_to(self.opened.ws_port, f"/observe/default?session={session}")
            audience = Audience(session, native, await leaving.enter_async_context(observing), http)
            await audience.be_seated()
            yield audience


@asynccontextmanager
async def open_theatre(folder: Path) -> AsyncGenerator[Theatre]:
    (folder / "game.toml").write_text(SETTINGS)
    config = load_config(folder / "game.toml")
    opened: list[Opened] = []
    stages: list[Stage] = []
    ready, stop = trio.Event(), trio.Event()

    def announce(told: Opened) -> None:
        opened.append(told)

    async def beside(worlds: HostedWorlds) -> None:
        stages.extend(each.access.stage for each in worlds.opened())
        ready.set()
        await trio.lowlevel.checkpoint()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, config, announce, stop, beside=beside))
            await ready.wait()
            yield Theatre(opened[0], stages[0])
            stop.set()


async def told_of(folder: Path, said: str, cancel_at: EventType | None = None) -> Story:
    async with open_theatre(folder) as theatre, theatre.audience() as audience:
        return await audience.watch(said, cancel_at)
