"""The transcripts of the chat gateway are what the real server says."""

from __future__ import annotations

import json
import re
from typing import Any

from footlights import ModelError, Prompt
from footlights_actors import Fail, Line, Pause, Say, ScriptedModel
from tests.docs.test_docs_transcripts import fits
from tests.kit.paths import ROOT
from tests.kit.peers.kgent_peer import Client, observe, open_chat_house, perturb

PAGE = ROOT / "docs/reference/kgent.md"
PARTS = re.findall(
    r"^```text (perturb|observe)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def script(prompt: Prompt) -> list[Line]:
    if "break off" in prompt.user:
        return [Say("Well,"), Fail(ModelError("down"))]
    return [Say("What"), Pause(0.001), Say(" matters most.")]


async def test_the_server_says_what_the_page_tells() -> None:
    assert len(PARTS) == 7
    async with open_chat_house(ScriptedModel(script)) as house, observe(house) as ear, perturb(house) as mouth:
        ends: dict[str, Client] = {"perturb": mouth, "observe": ear}
        for end, part in PARTS:
            for line in part.splitlines():
                if line.startswith("→ "):
                    await ends[end].socket.send_message(line.removeprefix("→ "))
                else:
                    said, told = await ends[end].receive(), json.loads(line.removeprefix("← "))
                    assert fits(said, told), f"{said} is not {told}"
        told_before = len(ear.frames)
        await mouth.send("hello", correlation_id="last")
        assert unread(await ear.hear("last")) == unread(ear.frames[told_before:]), "it said more than the page tells"
        assert len(mouth.frames) == 4


def unread(frames: list[dict[str, Any]]) -> list[int]:
    return [each["sequence"] for each in frames]
