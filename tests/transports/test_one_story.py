"""One turn, watched in every way that there is at once, on one running server: all of them tell the same story."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import trio
from attrs import frozen

from footlights import CommitFinal, EventType, TurnFinal, TurnInterrupted
from footlights.testing import only as only_payload
from footlights_transports.config import load_config
from footlights_transports.serve import Opened, serve

from .dexi_kit import lawful, output
from .kgent_peer import Client, connect_to, only
from .served import open_peer, write_game

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from footlights import StreamEvent

    from .ws_peer import Peer

SESSION = "shared"
LISTENING = {"session_state": "active", "context_tier": "1", "voice_mode": "normal"}


@frozen
class Audience:
    """Everybody who watches one session."""

    native: Peer
    kgent: Client
    http: httpx2.AsyncClient

    async def chat(self, last: str) -> list[str]:
        """The feed, once this is the last message in it."""
        while (messages := await self._chat())[-1:] != [last]:
            await trio.lowlevel.checkpoint()
        return messages

    async def callout(self) -> dict[str, Any]:
        """The only one on the board, once it is there."""
        while not (found := await self._callouts()):
            await trio.lowlevel.checkpoint()
        (callout,) = found
        return callout

    async def be_seated(self) -> None:
        """The feed and the board begin when they are first read."""
        assert await self._chat() == []
        assert await self._callouts() == []

    async def _chat(self) -> list[str]:
        messages = (await self.http.get(f"/v1/sessions/{SESSION}/chat")).json()["messages"]
        return [each["content"] for each in messages]

    async def _callouts(self) -> list[dict[str, Any]]:
        answer = await self.http.get(f"/api/mission-board/{SESSION}/events", params=LISTENING)
        assert answer.status_code == 200, answer.text
        return [each["payload"] for each in answer.json()["events"]]

    async def dexi(self, said: str) -> tuple[str, list[dict[str, Any]]]:
        """The id of the turn, and the whole run."""
        body = {"message": said, "session_id": SESSION, "stream": False}
        answer = (await self.http.post("/api/agents/default/invoke", json=body)).json()
        run = (await self.http.get(f"/api/runs/{answer['run_id']}")).json()
        return run["turn_id"], lawful(answer["events"])


@asynccontextmanager
async def open_theatre(folder: Path) -> AsyncGenerator[Audience]:
    config, opened = load_config(write_game(folder)), list[Opened]()
    ready, stop = trio.Event(), trio.Event()

    def announce(told: Opened) -> None:
        opened.append(told)
        ready.set()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, config, announce, stop)
            await ready.wait()
            async with (
                open_peer(opened[0].ws_port) as native,
                httpx2.AsyncClient(base_url=f"http://127.0.0.1:{opened[0].http_port}", timeout=None) as http,
            ):
                await native.ask("start", params={"session_id": SESSION})
                await native.ask("subscribe", session_id=SESSION)
                async with connect_to(opened[0].ws_port, f"/observe/default?session={SESSION}") as kgent:
                    audience = Audience(native, kgent, http)
                    await audience.be_seated()
                    yield audience
            stop.set()


async def watched_natively(audience: Audience, turn_id: str) -> list[StreamEvent]:
    return await audience.native.take_until(EventType.COMMIT_FINAL, turn_id)


async def test_a_turn_that_ends_well_is_the_same_story_everywhere(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as audience:
        turn_id, run = await audience.dexi("Hello there, my friend")
        events = await watched_natively(audience, turn_id)
        text = only_payload(events, TurnFinal).text
        assert only_payload(events, CommitFinal).commit_outcome == "ok"
        assert text == "Good evening. Hello there, my friend"

        assert output(run) == text
        assert run[-1]["outcome"] == "completed"

        (message,) = only(await audience.kgent.hear(turn_id), "message")
        assert (message["content"], message["turn_id"]) == (text, turn_id)
        assert message["tokens_used"] == only_payload(events, TurnFinal).output_tokens

        assert text in await audience.chat("The turn is committed.")

        callout = await audience.callout()
        assert callout["certainty_class"] == "confirmed"
        assert f"commit:{only_payload(events, CommitFinal).commit_id}" in callout["evidence_refs"]


async def test_a_turn_that_fails_is_the_same_story_everywhere(tmp_path: Path) -> None:
    async with open_theatre(tmp_path) as audience:
        turn_id, run = await audience.dexi("Please fail now")
        events = await watched_natively(audience, turn_id)
        assert only_payload(events, TurnInterrupted).reason == "model_error"
        assert only_payload(events, CommitFinal).commit_outcome == "fail_closed"

        assert output(run) == ""
        assert run[-1]["outcome"] == "failed"

        told = await audience.kgent.hear(turn_id)
        assert [each["event_type"] for each in told] == ["error", "done"]
        assert only(told, "error")[0]["code"] == "LLM_UNAVAILABLE"

        assert "The turn ended early: the model failed." in await audience.chat("Nothing of the turn was committed.")

        callout = await audience.callout()
        assert (callout["event_type"], callout["classification"]) == ("threat_update", "critical")
        assert callout["evidence_refs"][0].startswith(f"turn:{turn_id}#")
