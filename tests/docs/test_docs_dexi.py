"""The transcripts in the reference of Dexi are what the real server says."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import trio

from footlights import open_stage
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.base.run_keeper import MAX_BYTES, MAX_RUN_BYTES, MAX_RUNS, MAX_RUNS_OF_A_USER
from footlights_transports.views.dexi.pure.heartbeat import HEARTBEAT_AFTER
from tests.kit.paths import ROOT
from tests.kit.serving import serve_http

if TYPE_CHECKING:
    from footlights_transports.server.listening import Listening

PAGE = (ROOT / "docs/reference/dexi.md").read_text(encoding="utf-8")
STREAMS = re.findall(r"^```text stream\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MESSAGE = "Search the documents about onboarding."


def told(stream: str) -> list[dict[str, Any]]:
    """The events of a transcript, which are numbered and named as they should be."""
    events: list[dict[str, Any]] = []
    for number, block in enumerate(stream.strip().split("\n\n")):
        place, name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert (place, name) == (f"id: {number}", f"event: {event['type']}")
        events.append(event)
    return events


def joined(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, with the pieces of the agent's answer as one: how many they are is left to chance."""
    kept: list[dict[str, Any]] = []
    for event in events:
        last = kept[-1] if kept else {"type": ""}
        if not (last["type"] == event["type"] == "output_delta" and "I have not run anything" not in last["content"]):
            kept.append(event)
    return kept


def fits(said: dict[str, Any], page: dict[str, Any]) -> bool:
    return list(said) == list(page) and all(page[name] in ("…", value) for name, value in said.items())


async def test_the_server_says_what_the_page_tells() -> None:
    cast = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        serve = partial(serve_http, SessionAccess(stage), host="127.0.0.1", port=0)
        listening: Listening = await nursery.start(serve)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{listening.port}", timeout=None) as client:
            for policy, stream in zip(("auto", "deny"), STREAMS, strict=True):
                body = {"message": MESSAGE, "execution_policy": policy, "stream": False}
                answer = await client.post("/api/agents/analyst/invoke", json=body)
                said, page = joined(answer.json()["events"]), told(stream)
                assert len(said) == len(page)
                assert [each for each in zip(said, page, strict=True) if not fits(*each)] == []
        nursery.cancel_scope.cancel()
    assert MESSAGE in PAGE


def test_the_page_says_how_long_runs_are_kept_and_when_hearts_beat() -> None:
    assert f"last {MAX_RUNS:,} finished runs" in PAGE
    assert f"of each user the last {MAX_RUNS_OF_A_USER}" in PAGE
    assert f"{MAX_BYTES // 1_000_000} MB" in PAGE
    assert f"more than {MAX_RUN_BYTES // 1_000_000} MB is not kept" in PAGE
    assert f"nothing was sent for {HEARTBEAT_AFTER} seconds" in PAGE
