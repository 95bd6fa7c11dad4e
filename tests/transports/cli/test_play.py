"""`footlights play` with a scripted player: prompts, output and interrupts."""

from __future__ import annotations

import os
import signal
from io import FileIO
from math import inf
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_actors.demo.tavern.tools import RUMOURS
from footlights_transports.cli.narration import Tone, note
from footlights_transports.cli.play import FdLines, play
from footlights_transports.cli.screen import Line, Loading, Screen, Typed, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from trio.testing import MockClock

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

    async def receive(self) -> str | None:
        await trio.lowlevel.checkpoint()
        return next(self._lines, None)


class Silence:
    """A player who says nothing, for ever."""

    async def receive(self) -> str | None:
        await trio.sleep_forever()


class Recorder(Screen):
    """A screen that remembers, and lets somebody react to what it shows."""

    def __init__(self, react: Callable[[Piece], None] | None = None, asked: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self.left = 0
        self._react = react
        self._asked = asked

    def ask(self) -> None:
        if self._asked is not None:
            self._asked()

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


async def test_a_turn_is_played_from_the_line_to_what_became_true(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(tavern_cast(), Script("I'll take the attic"), screen)
    assert screen.pieces[0] == Typed("I'll take the attic")
    assert screen.pieces[1] == Loading("innkeeper", None)
    assert screen.notes(Tone.GOOD)[0].startswith("committed c-")
    assert screen.pieces[-1] == note(Tone.ASIDE, '/rooms/attic/guest = "the traveller", /purse = 18, /till = 33')
    assert screen.left == 1


@pytest.mark.parametrize(("answer", "lantern"), [("/yes a-000001", True), (" /no a-000001 ", False)])
async def test_a_question_is_shown_and_answered_by_a_line_of_its_own(
    quiet_clock: MockClock, answer: str, lantern: bool
) -> None:
    screen = Recorder()
    await play(tavern_cast(), Script("I want to buy the lantern", answer), screen)
    question = "Buy the lantern of the house for 15 coins? Answer /yes a-000001 or /no a-000001"
    assert question in screen.notes(Tone.ASIDE)
    assert any("/lantern" in note for note in screen.notes(Tone.ASIDE)) is lantern
    assert len(screen.notes(Tone.GOOD)) == 2


async def test_blank_lines_are_no_turns(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(tavern_cast(), Script("", "   ", "\t"), screen)
    assert screen.pieces == []


async def test_a_line_that_is_refused_is_said_and_the_play_goes_on(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(tavern_cast(), Script("x" * 70_000, "Hello"), screen)
    assert screen.notes(Tone.BAD) == ["too_large: The input is longer than 65536 bytes (max_input_bytes)."]
    assert len(screen.notes(Tone.GOOD)) == 1


async def test_an_interrupt_stops_the_innkeeper_and_not_the_play(quiet_clock: MockClock) -> None:
    press, interrupts = trio.open_memory_channel[int](inf)

    def interrupt_once(piece: Piece) -> None:
        if piece == Words(" lighthouse") and not screen.notes(Tone.BAD):
            press.send_nowait(signal.SIGINT)

    screen = Recorder(react=interrupt_once)
    await play(tavern_cast(), Script("Any rumours?", "Any rumours?"), screen, interrupts)
    interrupted, closed = screen.notes(Tone.BAD)
    assert interrupted == "interrupted: canceled"
    assert closed.startswith("fail_closed c-")
    first, second = screen.speech().split("Lean closer.")[1:]
    assert first.split("Innkeeper: ")[1] == "They say the old lighthouse\n"
    assert RUMOURS[0] in second
    assert screen.left == 1


async def test_an_interrupt_at_the_prompt_leaves(quiet_clock: MockClock) -> None:
    press, interrupts = trio.open_memory_channel[int](inf)
    screen = Recorder(asked=lambda: press.send_nowait(signal.SIGINT))
    await play(tavern_cast(), Silence(), screen, interrupts)
    assert screen.pieces == []
    assert screen.left == 1


async def test_the_end_of_the_lines_leaves_although_an_interrupt_might_come(quiet_clock: MockClock) -> None:
    _press, interrupts = trio.open_memory_channel[int](inf)
    screen = Recorder()
    await play(tavern_cast(), Script(), screen, interrupts)
    assert screen.left == 1


async def test_a_screen_that_fails_is_left_and_its_error_is_not_wrapped(quiet_clock: MockClock) -> None:
    def fail(_: Piece) -> None:
        raise BrokenPipeError

    screen = Recorder(react=fail)
    with pytest.raises(BrokenPipeError):
        await play(tavern_cast(), Script("Hello"), screen)
    assert screen.left == 1
