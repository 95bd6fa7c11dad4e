"""JavaScript clients of narrated runs: Node's own EventSource, and the npm package eventsource-parser.

The other tests read streams with httpx2.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from footlights_transports.views.dexi.pure.schema import EVENT_NAMES
from tests.kit.peers.http_peer import open_house
from tests.kit.peers.js_peer import JS, nodes, run_js, with_packages
from tests.kit.views.dexi_kit import lawful, types
from tests.kit.views.dexi_server import agency, answer_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.peers.js_peer import Script
    from tests.kit.views.dexi_kit import Raw

WORK = {"message": "Search the shelves for rain."}
INVOKE = "/api/agents/clerk/invoke"


def nodes_with_event_source() -> list[str]:
    ask = ("--no-warnings", "--experimental-eventsource", "-p", "typeof EventSource")
    answers = {node: subprocess.run([node, *ask], capture_output=True, check=False).stdout for node in nodes()}
    return [node for node, answer in answers.items() if answer == b"function\n"]


async def read(script: Script) -> list[Raw]:
    events: list[Raw] = []
    while (told := await script.told()) is not None:
        assert told["id"] == str(len(events))
        events.append(told["event"])
    return lawful(events)


@pytest.mark.shows("narration-53")
async def test_node_s_event_source_reads_a_run() -> None:
    found = nodes_with_event_source()
    if not found:
        pytest.skip("no Node here has an EventSource")
    async with open_house(cast=agency()) as house:
        events = await answer_of(house.client, INVOKE, WORK)
        url = f"{house.address}/api/runs/{events[0]['run_id']}/events"
        for node in found:
            async with run_js(node, "event_source.mjs", url=url, types=EVENT_NAMES) as script:
                assert await read(script) == events


@pytest.mark.shows("narration-53")
@pytest.mark.parametrize("node", nodes())
async def test_an_npm_parser_reads_a_run(node: str, tmp_path: Path) -> None:
    folder = with_packages(tmp_path, JS / "event_parser.mjs", JS / "script.mjs")
    async with open_house(cast=agency()) as house:
        options = {"url": f"{house.address}{INVOKE}", "body": WORK}
        async with run_js(node, "event_parser.mjs", folder=folder, **options) as script:
            events = await read(script)
        assert types(events)[0] == "mode"
        again = await answer_of(house.client, INVOKE, WORK)
        assert types(again) == types(events)
