"""Conversation with a scripted player: prompts, commands, answers, output and interrupts."""

from __future__ import annotations

import os
import re
import signal
from contextlib import asynccontextmanager
from io import FileIO
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import open_stage
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.tools import RUMOURS
from footlights_transports.cli.play.conversation import converse
from footlights_transports.cli.play.explain import MAX_DEPTH, tell_world
from footlights_transports.cli.play.games import LocalGame
from footlights_transports.cli.play.lines import DISCARDED, FdLines
from footlights_transports.cli.screen import Line, Loading, Screen, Typed, Words
from footlights_transports.cli.turn_view import Tone, note

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator

    from trio.testing import MockClock

    from footlights import StreamEvent
    from footlights_transports.cli.play.games import Events
    from footlights_transports.cli.screen import Piece

# -- the lines


@pytest.fixture
def pipe() -> Generator[tuple[int, FileIO]]:
    reading, writing = os.pipe()
    with FileIO(writing, "w") as player:
        yield reading, player
    os.close(reading)


async def test_lines_come_without_their_ends_and_then_none(pipe: tuple[int, FileIO]) -> None:
    reading, player = pipe
    lines = FdLines(reading)
    with player:
        player.write(b"one\r\n\ntw\xffo")
    assert [await lines.receive() for _ in range(4)] == ["one", "", "tw\N{REPLACEMENT CHARACTER}o", None]


async def test_waiting_for_a_line_can_be_cancelled_and_costs_that_line(pipe: tuple[int, FileIO]) -> None:
    reading, player = pipe
    lines = FdLines(reading)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lines.receive)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    player.write(b"lost\nfound\n")
    assert await lines.receive() == "found"


# -- the driver, with a player of paper


class Script:
    """Lines that were written before."""

    def __init__(self, *lines: str) -> None:
        self._lines = iter(lines)
        self.prompts: list[str] = []

    async def receive(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        await trio.lowlevel.checkpoint()
        return next(self._lines, None)


class Silence:
    """A player who says nothing, for ever."""

    def __init__(self, asked: Callable[[], None]) -> None:
        self.prompts = 0
        self._asked = asked

    async def receive(self, prompt: str) -> str | None:
        self.prompts += 1
        self._asked()
        await trio.sleep_forever()


class Recorder(Screen):
    """A screen that remembers, and lets somebody react to what it shows."""

    def __init__(self, react: Callable[[Piece], None] | None = None) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self.left = 0
        self._react = react

    def show(self, piece: Piece) -> None:
        self.pieces.append(piece)
        if self._react is not None:
            self._react(piece)

    def leave(self) -> None:
        self.left += 1

    def notes(self, tone: Tone) -> list[str]:
        mark = f"  {tone} "
        return [
            piece.text.removeprefix(mark) for piece in self.pieces if isinstance(piece, Line) and mark in piece.text
        ]

    def speech(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Words))


async def play(
    lines: Script | Silence, screen: Recorder, interrupts: trio.MemoryReceiveChannel[int] | None = None
) -> int:
    async with open_stage(tavern_cast()) as stage:
        return await converse(LocalGame(stage, stage.start(), None), lines, screen, interrupts)


async def test_a_turn_is_played_from_the_line_to_what_became_true(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("I'll take the attic"), screen)
    assert screen.pieces[0] == Typed("I'll take the attic")
    assert screen.pieces[1] == Loading("innkeeper", None)
    assert screen.notes(Tone.GOOD)[0].startswith("committed c-")
    assert screen.pieces[-1] == note(Tone.ASIDE, "rooms, attic, guest: the traveller; purse: 18; till: 33")
    assert screen.left == 1


QUESTION = "Buy the lantern of the house for 15 coins? [y/n]"


@pytest.mark.parametrize(
    ("answer", "lantern"),
    [("y", True), (" YES ", True), ("n", False), ("No", False), ("/yes a-000001", True), (" /no a-000001 ", False)],
)
async def test_an_approval_is_asked_for_and_answered_by_the_next_line(
    quiet_clock: MockClock, answer: str, lantern: bool
) -> None:
    screen, lines = Recorder(), Script("I want to buy the lantern", answer)
    await play(lines, screen)
    assert screen.notes(Tone.ASIDE).count(QUESTION) == 1
    assert lines.prompts == ["> ", "[y/n] ", "> "]
    assert any("lantern: the traveller" in note for note in screen.notes(Tone.ASIDE)) is lantern
    assert len(screen.notes(Tone.GOOD)) == 2


async def test_an_approval_waits_if_something_else_is_said(quiet_clock: MockClock) -> None:
    screen, lines = Recorder(), Script("I want to buy the lantern", "/world", "Hello", "y", "/yes a-000001")
    await play(lines, screen)
    assert lines.prompts == ["> ", "[y/n] ", "[y/n] ", "> ", "> ", "> "]
    assert "It waits for your answer: /yes a-000001 or /no a-000001" in screen.notes(Tone.ASIDE)
    assert screen.notes(Tone.ASIDE)[-1] == "purse: 5; till: 46; lantern: the traveller"


async def test_an_answer_without_an_id_is_for_the_only_question_that_waits(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("/yes", "I want to buy the lantern", "Hello", "/yes", "/no"), screen)
    assert any("lantern: the traveller" in each for each in screen.notes(Tone.ASIDE))
    assert screen.notes(Tone.BAD) == ["Nothing waits.", "Nothing waits."]


async def test_an_answer_without_an_id_names_the_questions_if_several_wait(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [("a-000001", "One?"), ("a-000002", "Two?")]
    monkeypatch.setattr("footlights_transports.cli.play.conversation.questions", lambda _: asked)
    screen = Recorder()
    await play(Script("Hello", "/yes"), screen)
    assert screen.notes(Tone.BAD) == ["Say which: /yes ID, of a-000001, a-000002."]


# -- commands


def test_a_world_without_end_is_shown_to_some_depth() -> None:
    world: object = "the end"
    for _ in range(5_000):
        world = {"in": world}
    lines = tell_world(world)
    assert len(lines) == MAX_DEPTH + 1
    assert lines[-1] == Line("  " * (MAX_DEPTH + 1) + "…")


async def test_why_tells_what_the_last_turn_committed_and_why(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("/why", "I'll take the attic", "/why", "rent the attic for 1 coin", "/why"), screen)
    notes = screen.notes(Tone.ASIDE)
    assert notes[0] == "Nothing was said yet."
    rules = "known_acts, lodging, kitchen, purse, rumours, simulations, lantern, approvals"
    why = notes.index("asked for: tool_result of rent_room")
    assert notes[why - 1].startswith("t1-000001 was committed as c-")
    assert notes[why + 1] == f"accepted by the rules {rules}"
    assert notes[why + 2] == "rooms, attic, guest: the traveller; purse: 18; till: 33"
    assert len([each for each in notes if each.startswith(("refused by", "because"))]) <= 2


async def test_why_names_the_rule_that_refused(quiet_clock: MockClock) -> None:
    screen = Recorder()
    assert await play(Script("rent the garden room for 1 coin", "/why"), screen) == 1  # so a piped play exits with 1
    notes = screen.notes(Tone.ASIDE)
    assert "refused by the rule lodging: wrong_price" in notes
    assert any(re.fullmatch("t1-000001 ended as c-[0-9a-f]{16}: fail_closed", note) for note in notes)
    assert notes[-2] == "nothing changed"
    assert notes[-1].startswith("took ")


async def test_the_world_is_an_outline_without_pointers(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("/world"), screen)
    lines = [piece.text for piece in screen.pieces if isinstance(piece, Line)]
    assert lines[lines.index("    attic") + 1] == "      guest: none"
    assert "  purse: 20" in lines


async def test_help_names_every_command_and_quit_leaves(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("/help", "/dance", " /quit ", "Hello"), screen)
    shown = "\n".join(piece.text for piece in screen.pieces if isinstance(piece, Line))
    assert all(each in shown for each in ("/world", "/why", "/yes", "/quit", "Ctrl-C"))
    assert screen.notes(Tone.BAD) == ["There is no such command. /help shows those that there are."]
    assert screen.notes(Tone.GOOD) == []


@pytest.mark.parametrize(("word", "command"), [("quit", "/quit"), (" Exit ", "/quit"), ("help", "/help")])
async def test_a_command_without_its_slash_is_a_hint_and_no_turn(
    quiet_clock: MockClock, word: str, command: str
) -> None:
    screen = Recorder()
    await play(Script(word, "I quit"), screen)
    assert screen.notes(Tone.ASIDE)[0] == f"A command begins with a slash: {command}"
    assert len(screen.notes(Tone.GOOD)) == 1


async def test_commands_may_be_written_in_capitals(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("/HELP", "/World", "/QUIT", "Hello"), screen)
    assert (screen.notes(Tone.BAD), screen.notes(Tone.GOOD)) == ([], [])


async def test_why_names_the_tool_that_refused(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("rent the gable room", "/why", "Hello", "/why"), screen)
    refused = "refused by the tool rent_room: The book has Mirel the tinker in the gable room."
    notes = screen.notes(Tone.ASIDE)
    assert notes[notes.index(refused) + 1] == "asked for: nothing"
    assert notes.count(refused) == 1


# -- lines that are no turns


async def test_blank_lines_are_no_turns(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(Script("", "   ", "\t"), screen)
    assert screen.pieces == []


async def test_a_line_that_is_refused_is_said_and_the_play_goes_on(quiet_clock: MockClock) -> None:
    screen = Recorder()
    assert await play(Script("x" * 70_000, "Hello"), screen) == 1
    assert screen.notes(Tone.BAD) == ["too_large: The input is longer than 65536 bytes (max_input_bytes)."]
    assert len(screen.notes(Tone.GOOD)) == 1


async def test_an_interrupt_stops_the_innkeeper_and_not_the_play(quiet_clock: MockClock) -> None:
    press, interrupts = trio.open_memory_channel[int](inf)

    def interrupt_once(piece: Piece) -> None:
        if piece == Words(" lighthouse") and not screen.notes(Tone.BAD):
            press.send_nowait(signal.SIGINT)

    screen = Recorder(react=interrupt_once)
    assert await play(Script("Any rumours?", "Any rumours?"), screen, interrupts) == 1
    interrupted, closed = screen.notes(Tone.BAD)
    assert interrupted == "interrupted: canceled"
    assert closed.startswith("nothing changed (fail_closed c-")
    first, second = screen.speech().split("Lean closer.")[1:]
    assert first.split("Innkeeper: ")[1] == "They say the old lighthouse\n"
    assert RUMOURS[0] in second
    assert screen.left == 1


async def test_a_second_interrupt_at_the_prompt_leaves(quiet_clock: MockClock) -> None:
    press, interrupts = trio.open_memory_channel[int](inf)
    screen, lines = Recorder(), Silence(asked=lambda: press.send_nowait(signal.SIGINT))
    await play(lines, screen, interrupts)
    assert screen.pieces == [note(Tone.ASIDE, "Ctrl-C again leaves.")]
    assert lines.prompts == 2
    assert screen.left == 1


class Gone:
    """A game on a server that does not answer any more."""

    name = "NPC"

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Events]:
        yield self

    async def wait(self, *_: object) -> Any:
        await trio.sleep_forever()

    begin_turn = cancel = world = record = notes = summary = wait

    def watch_connection(self, tell: Callable[[bool], object]) -> None:
        """It is never lost."""

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]:
        raise NotImplementedError

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        raise NotImplementedError


async def test_a_server_that_does_not_answer_can_be_left(quiet_clock: MockClock) -> None:
    press, interrupts = trio.open_memory_channel[int](inf)
    screen = Recorder(react=lambda _: press.send_nowait(signal.SIGINT))
    with trio.fail_after(60):
        await converse(Gone(), Script("Hello"), screen, interrupts)
    assert screen.notes(Tone.BAD) == ["The server does not answer. Ctrl-C again leaves."]
    assert screen.left == 1


class Away(Gone):
    """A game on a server that goes away when a turn begins."""

    async def begin_turn(self, *_: object) -> str:
        self.tell(False)
        await trio.sleep(5)
        self.tell(True)
        return str(await super().begin_turn())

    def watch_connection(self, tell: Callable[[bool], object]) -> None:
        self.tell = tell


async def test_quit_leaves_while_the_server_is_away(quiet_clock: MockClock) -> None:
    _press, interrupts = trio.open_memory_channel[int](inf)
    screen, lines = Recorder(), Script("Hello", "", "And you?", " /QUIT ", "never")
    with trio.fail_after(4):
        await converse(Away(), lines, screen, interrupts)
    assert screen.notes(Tone.BAD) == ["connection lost, trying again …", "The server is away. /quit leaves."]
    assert lines.prompts == ["> "] * 4
    assert screen.left == 1


async def test_who_is_silent_while_the_server_is_away_goes_on_when_it_is_back(quiet_clock: MockClock) -> None:
    _press, interrupts = trio.open_memory_channel[int](inf)
    asked: list[float] = []

    class Patient(Script):
        async def receive(self, prompt: str) -> str | None:
            if self.prompts:
                asked.append(trio.current_time())
                self.prompts.append(prompt)
                await trio.sleep_forever()
            return await super().receive(prompt)

    screen, lines = Recorder(), Patient("Hello")
    with trio.move_on_after(60):
        await converse(Away(), lines, screen, interrupts)
    assert screen.notes(Tone.GOOD) == ["connected again"]
    assert len(asked) == 1, "the line is read no longer when the turn goes on"


async def test_a_second_discarded_line_leaves_and_others_do_not(quiet_clock: MockClock) -> None:
    screen, lines = Recorder(), Script(DISCARDED, "/help", DISCARDED, DISCARDED, "Hello")
    await play(lines, screen)
    assert screen.notes(Tone.ASIDE) == ["Ctrl-C again leaves.", "Ctrl-C again leaves."]
    assert lines.prompts == ["> "] * 4


async def test_the_end_of_the_lines_leaves_although_an_interrupt_might_come(quiet_clock: MockClock) -> None:
    _press, interrupts = trio.open_memory_channel[int](inf)
    screen = Recorder()
    await play(Script(), screen, interrupts)
    assert screen.left == 1


async def test_a_screen_that_fails_is_left_and_its_error_is_not_wrapped(quiet_clock: MockClock) -> None:
    def fail(_: Piece) -> None:
        raise BrokenPipeError

    screen = Recorder(react=fail)
    with pytest.raises(BrokenPipeError):
        await play(Script("Hello"), screen)
    assert screen.left == 1
