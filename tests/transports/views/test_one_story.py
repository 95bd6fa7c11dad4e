"""One turn, watched in every way that there is at once, on one running server: all of them tell the same story.

The six are the native events, the Dexi run, the K-gent observer, the AG-UI run, the chat feed and the mission board.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import trio
from attrs import frozen

from footlights import CommitFinal, EventType, TokenDelta, ToolCallResult, TurnFinal, TurnInterrupted
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
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from footlights import StreamEvent
    from tests.kit.peers.ws_peer import Peer

SESSION = "shared"
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
        assert is_ok is (self.run[-1]["outcome"] == "completed")
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

    native: Peer
    kgent: Client
    http: httpx2.AsyncClient

    async def be_seated(self) -> None:
        """The feed and the board begin when they are first read."""
        assert await self._chat() == []
        assert await self._callouts() == []

    async def watch(self, said: str, cancel_at: EventType | None = None) -> Story:
        """A turn that the Dexi surface begins, and that the native one cancels when this happens."""
        told: list[tuple[str, list[dict[str, Any]]]] = []

        async def invoke() -> None:
            told.append(await self._dexi(said))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(invoke)
            if cancel_at is not None:
                while not (found := [each for each in self.native.events if each.event_type is cancel_at]):
                    await self.native.receive()
                if cancel_at is EventType.TOOL_CALL_STARTED:
                    await BELL.rung.wait()
                await self.native.ask("cancel", session_id=SESSION, turn_id=found[0].turn_id)
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

    async def _dexi(self, said: str) -> tuple[str, list[dict[str, Any]]]:
        """The id of the turn, and the whole run."""
        body = {"message": said, "session_id": SESSION, "stream": False, "execution_policy": "force"}
        answer = (await self.http.post("/api/agents/default/invoke", json=body)).json()
        run = (await self.http.get(f"/api/runs/{answer['run_id']}")).json()
        return run["turn_id"], lawful(answer["events"])

    async def _ag_ui(self, turn_id: str) -> list[dict[str, Any]]:
        """The turn as a run, from its beginning."""
        port = self.http.base_url.port
        assert port is not None
        body = ag_ui_kit.asking("-", turn_id, SESSION)
        async with ag_ui_kit.running(port, "default", body, str(Position(turn_id))) as reader:
            return ag_ui_kit.lawful(await reader.take_all())

    async def _chat_until(self, last: str) -> list[str]:
        """The feed before this is said."""
        while last not in (messages := await self._chat()):
            await trio.lowlevel.checkpoint()
        return messages[: messages.index(last)]

    async def _callouts_until(self, turn_id: str, last_id: str) -> list[dict[str, Any]]:
        """Those about a turn, once a later one is called out."""
        while not _about(last_id, callouts := await self._callouts()):
            await trio.lowlevel.checkpoint()
        return _about(turn_id, callouts)

    async def _chat(self) -> list[str]:
        messages = (await self.http.get(f"/v1/sessions/{SESSION}/chat")).json()["messages"]
        return [each["content"] for each in messages]

    async def _callouts(self) -> list[dict[str, Any]]:
        answer = await self.http.get(f"/api/mission-board/{SESSION}/events", params=LISTENING)
        assert answer.status_code == 200, answer.text
        return [each["payload"] for each in answer.json()["events"]]


def _about(turn_id: str, callouts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in callouts if each["event_id"].startswith(f"{turn_id}.")]


@asynccontextmanager
async def open_theatre(folder: Path) -> AsyncGenerator[Audience]:
    (folder / "game.toml").write_text(SETTINGS)
    config, opened = load_config(folder / "game.toml"), list[Opened]()
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


async def told_of(folder: Path, said: str, cancel_at: EventType | None = None) -> Story:
    async with open_theatre(folder) as audience:
        return await audience.watch(said, cancel_at)


async def test_a_turn_that_ends_well_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Hello there, my friend")
    said = only_payload(story.events, TurnFinal).text
    assert said == "Good evening. Hello there, my friend"
    assert output(story.run) == said
    (message,) = only(story.kgent, "message")
    assert (message["content"], message["turn_id"]) == (said, story.turn_id)
    assert message["tokens_used"] == only_payload(story.events, TurnFinal).output_tokens
    assert story.chat[-2:] == [said, "The turn is committed."]
    assert story.board == ["A turn is committed. Its changes are kept."]
    assert f"commit:{story.commit.commit_id}" in story.callouts[0]["evidence_refs"]


async def test_a_turn_that_fails_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Please fail now")
    assert story.reason == "model_error"
    assert story.run[-1]["outcome"] == "failed"
    assert [each["event_type"] for each in story.kgent] == ["error", "done"]
    assert only(story.kgent, "error")[0]["code"] == "LLM_UNAVAILABLE"
    assert "Why (model_error): The model failed. The log says where." in story.summary
    assert story.chat[-2:] == [
        "The turn ended early. The model failed. The log says where.",
        "Nothing of the turn was committed.",
    ]
    assert story.board == ["A model failed. Nothing of it was committed."]
    assert (story.callouts[0]["event_type"], story.callouts[0]["classification"]) == ("threat_update", "critical")


async def test_a_turn_that_is_canceled_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Please stay", EventType.TOKEN_DELTA)
    assert story.reason == "canceled"
    assert story.run[-1]["outcome"] == "canceled"
    assert story.summary == "The run was canceled, and nothing was committed. No tool was run. Steps: 1 completed."
    assert [each["event_type"] for each in story.kgent] == ["chunk", "done"]
    assert story.chat[-2:] == ["The turn was canceled.", "Nothing of the turn was committed."]
    assert story.board == ["The turn was canceled. Nothing of it was committed."]
    assert f"commit:{story.commit.commit_id}" in story.callouts[0]["evidence_refs"]


async def test_a_turn_with_a_tool_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Look at the rooms")
    result = only_payload(story.events, ToolCallResult)
    assert (result.error, result.canceled) == (None, False)
    assert story.summary == "The run is completed. Done: Check rooms. Steps: 2 completed."
    assert only(story.kgent, "message")[0]["content"] == "Let me see. There."
    assert story.chat[-3:] == ["The tool check_rooms is done.", "Let me see. There.", "The turn is committed."]
    assert story.board == ["A turn is committed. Its changes are kept."]


async def test_a_tool_that_answers_with_an_error_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Look in the drawer")
    error = only_payload(story.events, ToolCallResult).error
    assert error is not None
    assert story.summary == "The run is completed. Not done: Open drawer (failed). Steps: 1 completed, 1 failed."
    assert only(story.kgent, "message")[0]["content"] == "Let me see. There."
    assert f"The tool open_drawer failed: {error.code}." in story.chat
    assert story.board == ["A tool failed. It gave no result.", "A turn is committed. Its changes are kept."]


async def test_a_tool_that_crashes_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Bring the tray")
    assert story.reason == "tool_error"
    assert story.run[-1]["outcome"] == "failed"
    why = "Why (tool_error): A tool crashed. The log says where."
    undone = "Not done: Drop tray (failed). Steps: 1 completed, 1 failed."
    assert story.summary == f"The run failed, and nothing was committed. {why} {undone}"
    assert [each["event_type"] for each in story.kgent] == ["chunk", "error", "done"]
    assert only(story.kgent, "error")[0]["message"].startswith("A tool that the answer needs failed.")
    assert story.chat[-2:] == [
        "The turn ended early. A tool crashed. The log says where.",
        "Nothing of the turn was committed.",
    ]
    assert story.board == ["A tool failed. It gave no result.", "A tool crashed. Nothing of it was committed."]


async def test_a_tool_that_is_cut_off_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Ring the bell", EventType.TOOL_CALL_STARTED)
    result = only_payload(story.events, ToolCallResult)
    assert (result.canceled, result.side_effects_may_have_occurred) == (True, True)
    assert story.run[-1]["outcome"] == "canceled"
    assert "The tool was canceled; it may have had side effects." in [each.get("summary") for each in story.run]
    assert [each["event_type"] for each in story.kgent] == ["chunk", "done"]
    assert "The tool ring_bell was canceled. It may have had an effect." in story.chat
    assert story.board == [
        "A tool was cut off while it worked. It may have done its work.",
        "The turn was canceled. Nothing of it was committed.",
    ]


async def test_a_turn_that_the_rules_refuse_is_the_same_story_everywhere(tmp_path: Path) -> None:
    story = await told_of(tmp_path, "Take the spoon")
    said = only_payload(story.events, TurnFinal).text
    assert said == "Let me see. There."
    (issue,) = story.commit.issues
    assert story.run[-1]["outcome"] == "failed"
    assert story.summary == "The run failed, and nothing was committed. Done: Take spoon. Steps: 2 completed."
    assert [each["event_type"] for each in story.kgent] == ["chunk", "error", "done"]
    assert only(story.kgent, "error")[0]["message"].startswith("The answer was not committed, and does not count.")
    assert story.chat[-2:] == [said, f"Nothing of the turn was committed. {issue.message}"]
    assert story.board == [f"A turn was refused. Nothing of it was committed: {issue.code}."]
    assert (story.callouts[0]["event_type"], story.callouts[0]["classification"]) == ("threat_update", "warn")
    assert f"commit:{story.commit.commit_id}" in story.callouts[0]["evidence_refs"]


async def test_an_act_that_waits_for_somebodys_word_is_the_same_story_everywhere(tmp_path: Path) -> None:
    question = "Buy the lantern of the house for 15 coins?"
    async with open_theatre(tmp_path) as audience:
        story = await audience.watch("Sell me the lantern")
        assert story.run[-1]["outcome"] == "completed"
        assert only(story.kgent, "message")[0]["content"] == "Let me see. There."
        assert story.chat[-1] == f"Approval needed (a-000001): {question} Answer it in a new turn."
        assert story.board == [
            f"Somebody has to decide. {question}",
            "A turn is committed. Its changes are kept. An act waits for somebody's word.",
        ]
        assert "lantern" not in (await audience.http.get("/v1/world")).json()["world"]
