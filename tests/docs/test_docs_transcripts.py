"""The transcripts in the protocol reference are what the real server says."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio_websocket import open_websocket_url

from footlights import Limits, Persona, open_stage
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.session_access import SessionAccess
from tests.kit.paths import ROOT
from tests.kit.serving import serve_ws

if TYPE_CHECKING:
    from footlights import Prompt
    from footlights_actors import Line

PAGE = ROOT / "docs/reference/protocol.md"
TRANSCRIPTS = re.findall(r"^```text transcript\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
FEATURES = ["a turn", "a turn once", "interrupting", "errors", "coming back", "coming back late", "ping"]
ANYTHING = "…"
PATIENCE = 10


def innkeeper(prompt: Prompt) -> list[Line]:
    return [Stall()] if prompt.user == "Never mind." else [Say("Yes.")]


def fits(said: Any, told: Any) -> bool:
    """Whether what the server said is what the page tells."""
    if told == ANYTHING:
        return True
    if isinstance(told, dict) and isinstance(said, dict):
        return said.keys() == told.keys() and all(fits(said[key], told[key]) for key in told)
    return type(said) is type(told) and bool(said == told)


def test_there_is_a_transcript_for_each_feature() -> None:
    assert len(TRANSCRIPTS) == len(FEATURES)


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=FEATURES)
async def test_the_server_says_what_the_page_tells(transcript: str) -> None:
    cast = standard_cast(ScriptedModel(innkeeper), personas={"innkeeper": Persona()})
    limits = Limits(replay_turns=1)
    async with open_stage(cast, limits=limits) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        listening = await nursery.start(partial(serve_ws, access, host="127.0.0.1", port=0))
        url = f"ws://127.0.0.1:{listening.port}/v1"
        with trio.fail_after(PATIENCE):
            async with open_websocket_url(url, subprotocols=["footlights.v1"]) as socket:
                early: list[Any] = []
                for line in transcript.splitlines():
                    if line.startswith("→ "):
                        await socket.send_message(line[2:])
                        continue
                    told = json.loads(line.removeprefix("← "))
                    while not any(fits(said, told) for said in early):
                        early.append(json.loads(await socket.get_message()))
                    early.remove(next(said for said in early if fits(said, told)))
                assert early == [], "the server said more than the page tells"
        nursery.cancel_scope.cancel()
