"""Conversations and scripts that are cancelled at every point leave no task and no turn behind."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import trio

from footlights.testing import cancel_everywhere
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.cli.play.conversation import converse
from footlights_transports.cli.play.games import open_local_game
from footlights_transports.cli.play.lines import DISCARDED
from footlights_transports.cli.play.script import play_script
from footlights_transports.cli.screen import PlainScreen

if TYPE_CHECKING:
    from footlights import Cast


class Script:
    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    async def receive(self, _prompt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return self._lines.pop(0) if self._lines else None


def cast() -> Cast:
    return standard_cast(ScriptedModel(lambda _: [Say("Good evening, my friend.")], pace=0.01))


def test_a_conversation_can_be_cancelled_everywhere() -> None:
    async def scenario() -> None:
        press, interrupts = trio.open_memory_channel[None](1)
        press.send_nowait(None)
        async with open_local_game(cast()) as game:
            await converse(game, Script("Hello", DISCARDED, "/why", "Bye"), PlainScreen(StringIO()), interrupts)

    cancel_everywhere(scenario)


def test_a_script_can_be_cancelled_everywhere() -> None:
    async def scenario() -> None:
        lines = Script('{"say": "Hello"}', "nonsense", '{"say": "Bye"}', '{"cancel": true}')
        shown: list[bytes] = []
        async with open_local_game(cast()) as game:
            await play_script(game, lines, shown.append, shown.append)

    cancel_everywhere(scenario)
