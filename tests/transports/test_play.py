"""`footlights play`: what is shown, what an interrupt does, and how it behaves in a pipe and in a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from io import FileIO, StringIO
from math import inf
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from rich.console import Console

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    EventType,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.authority import patch
from footlights.events import PAYLOAD_TYPES, SCHEMA_V
from footlights_actors.tavern import tavern_cast
from footlights_actors.tavern_tools import RUMOURS
from footlights_transports.play import play
from footlights_transports.play_lines import FdLines
from footlights_transports.play_narration import (
    Asked,
    Loading,
    Narration,
    Note,
    Piece,
    Speaker,
    Speech,
    SpeechEnd,
    Tone,
    tell_changes,
)
from footlights_transports.play_plain import PlainScreen
from footlights_transports.play_rich import RichScreen, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from trio.testing import MockClock

DIGEST = "d" * 64

# -- the narration: events in, pieces out


def event(payload: Payload) -> StreamEvent:
    event_type = next(kind for kind in EventType if PAYLOAD_TYPES[kind] is type(payload))
    return StreamEvent(SCHEMA_V, "s1-000001", "t1-000001", 0, 0, event_type, payload)


def told(*payloads: Payload) -> list[Piece]:
    narration = Narration("Innkeeper")
    return [piece for payload in payloads for piece in narration.tell(event(payload))]


def spoken(*payloads: Payload) -> str:
    return "".join(piece.text for piece in told(*payloads) if isinstance(piece, Speech))


def test_speech_begins_with_the_speaker_and_ends_its_line() -> None:
    pieces = told(TokenDelta("Well", 0), TokenDelta(" met.", 4), TurnFinal("Well met."))
    assert pieces == [Speaker("Innkeeper"), Speech("Well"), Speech(" met."), SpeechEnd()]


def test_a_hole_in_the_text_is_filled_from_the_final() -> None:
    dropped = TokenDelta(" c", 3, dropped_seq_ranges=(SeqRange(2, 2),))
    assert spoken(TokenDelta("a", 0), dropped, TurnFinal("a b c d")) == "a b c d"


def test_text_that_never_came_in_deltas_is_told_by_the_final() -> None:
    assert told(TurnFinal("Well met.")) == [Speaker("Innkeeper"), Speech("Well met."), SpeechEnd()]


def test_text_that_comes_twice_is_told_once() -> None:
    assert spoken(TokenDelta("a b", 0), TokenDelta(" b c", 1), TurnFinal("a b c")) == "a b c"


def test_a_turn_without_text_has_no_speaker() -> None:
    assert told(TokenDelta("  ", 0), TurnFinal("  ")) == []


def test_a_tool_interrupts_the_line_of_speech() -> None:
    pieces = told(
        TokenDelta("Let me see.", 0),
        ToolCallStarted("call-1", "check_rooms"),
        ToolCallResult("call-1", "check_rooms", canceled=False, summary="3 free"),
        TokenDelta(" Three.", 11),
    )
    assert pieces == [
        Speaker("Innkeeper"),
        Speech("Let me see."),
        SpeechEnd(),
        Note(Tone.ASIDE, "check_rooms …"),
        Note(Tone.ASIDE, "check_rooms: 3 free"),
        Speaker("Innkeeper"),
        Speech("Three."),
    ]


@pytest.mark.parametrize(
    ("payload", "piece"),
    [
        (ModelLoading("m", cold_start=True), Loading("m", None)),
        (ModelLoading("m", cold_start=True, progress=0.5), Loading("m", 0.5)),
        (ModelReady("m", WarmState.COLD, 1490), Note(Tone.ASIDE, "m is ready after a cold start of 1.5 s")),
        (ToolCallResult("c", "rent", canceled=False), Note(Tone.ASIDE, "rent: done")),
        (
            ToolCallResult("c", "rent", canceled=False, error=ErrorInfo("tool_error", "It is taken.")),
            Note(Tone.BAD, "rent: It is taken."),
        ),
        (
            ToolCallResult("c", "rent", canceled=True, side_effects_may_have_occurred=False),
            Note(Tone.BAD, "rent: canceled"),
        ),
        (
            ToolCallResult("c", "rent", canceled=True, side_effects_may_have_occurred=True),
            Note(Tone.BAD, "rent: canceled, and may have had side effects"),
        ),
        (TurnInterrupted(InterruptReason.STALLED), Note(Tone.BAD, "interrupted: stalled")),
        (CommitFinal(DIGEST, CommitOutcome.OK, commit_id="c-1"), Note(Tone.GOOD, "committed c-1")),
        (
            CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("a", "One."), Issue("b", "Two."))),
            Note(Tone.BAD, "fail_closed dddddddddddddddd: One. Two."),
        ),
    ],
)
def test_each_event_has_its_piece(payload: Payload, piece: Piece) -> None:
    assert told(payload) == [piece]


@pytest.mark.parametrize("payload", [TurnAccepted(), ModelSelected("m", "default"), ModelReady("m", WarmState.HOT, 0)])
def test_what_nobody_needs_to_know_is_not_told(payload: Payload) -> None:
    assert told(payload) == []


def test_control_characters_never_reach_a_screen() -> None:
    assert spoken(
        TurnFinal("a\x1b[31m\tb\r\n\x9bc")
    ) == "a\N{REPLACEMENT CHARACTER}[31m b\N{REPLACEMENT CHARACTER}\n" + ("\N{REPLACEMENT CHARACTER}c")
    assert Note(Tone.BAD, "two\nlines").text == "two lines"
    assert Asked("\x07").text == "\N{REPLACEMENT CHARACTER}"


def test_what_a_commit_changed_is_told_in_one_line() -> None:
    changes = (patch.replace("/purse", 15), patch.add("/who", "Zoë"), patch.remove("/door"))
    assert tell_changes(changes) == [Note(Tone.ASIDE, '/purse = 15, /who = "Zoë", remove /door')]
    assert tell_changes(()) == []


# -- the screens

PIECES = (
    Asked("A room?"),
    Loading("innkeeper", None),
    Loading("innkeeper", 0.5),
    Note(Tone.ASIDE, "ready"),
    Speaker("Innkeeper"),
    Speech("Here is"),
    Speech(" your room."),
    SpeechEnd(),
    Note(Tone.GOOD, "committed c-1"),
)


def test_the_plain_screen_writes_plain_text() -> None:
    out = StringIO()
    screen = PlainScreen(out)
    screen.ask()
    for piece in PIECES:
        screen.show(piece)
    screen.leave()
    assert out.getvalue().splitlines() == [
        "> A room?",
        "  · innkeeper is loading …",
        "  · ready",
        "Innkeeper: Here is your room.",
        "  ✓ committed c-1",
    ]


def rich_screen(width: int = 60) -> tuple[RichScreen, StringIO]:
    out = StringIO()
    return RichScreen(Console(file=out, force_terminal=True, width=width, height=20, _environ={})), out


def test_the_rich_screen_shows_the_bar_only_while_loading() -> None:
    screen, out = rich_screen()
    hide, show = "\x1b[?25l", "\x1b[?25h"
    screen.ask()
    for piece in PIECES[:3]:
        screen.show(piece)
    assert "innkeeper is loading" in out.getvalue()
    assert out.getvalue().count(hide) == 1
    assert show not in out.getvalue()
    screen.show(PIECES[3])
    assert show in out.getvalue()


def test_the_rich_screen_gives_the_cursor_back_when_it_is_left_in_the_middle() -> None:
    screen, out = rich_screen()
    screen.show(Loading("innkeeper", 0.5))
    screen.leave()
    assert "\x1b[?25h" in out.getvalue()


def test_the_rich_screen_does_not_repeat_what_the_player_typed() -> None:
    screen, out = rich_screen()
    screen.show(Asked("A room?"))
    assert out.getvalue() == ""


def test_the_rich_screen_streams_words_and_takes_nothing_for_markup() -> None:
    screen, out = rich_screen(width=20)
    for piece in (Speaker("Odo"), Speech("[bold]one"), Speech(" two three"), SpeechEnd()):
        screen.show(piece)
    assert out.getvalue().endswith("[bold]one two\nthree\n")


@pytest.mark.parametrize(
    ("text", "column", "wrapped", "ends_at"),
    [
        ("one two", 0, "one two", 7),
        (" three", 7, "\nthree", 5),
        ("a word that is long", 0, "a word\nthat is\nlong", 4),
        ("unbreakable-and-too-long", 0, "unbreakable-and-too-long", 24),
        ("one\ntwo", 5, "one\ntwo", 3),
        ("日本語 日本", 0, "日本語\n日本", 4),
        ("trailing ", 2, "\ntrailing ", 9),
    ],
)
def test_words_are_wrapped_as_they_come(text: str, column: int, wrapped: str, ends_at: int) -> None:
    assert wrap(text, column, width=8) == (wrapped, ends_at)


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


class Recorder:
    """A screen that remembers, and lets somebody react to what it shows."""

    def __init__(self, react: Callable[[Piece], None] | None = None, asked: Callable[[], None] | None = None) -> None:
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
        return [piece.text for piece in self.pieces if isinstance(piece, Note) and piece.tone is tone]

    def speech(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Speech))


async def test_a_turn_is_played_from_the_line_to_what_became_true(quiet_clock: MockClock) -> None:
    screen = Recorder()
    await play(tavern_cast(), Script("I'll take the attic"), screen)
    assert screen.pieces[0] == Asked("I'll take the attic")
    assert screen.pieces[1] == Loading("innkeeper", None)
    assert screen.notes(Tone.GOOD)[0].startswith("committed c-")
    assert screen.pieces[-1] == Note(Tone.ASIDE, '/rooms/attic/guest = "the traveller", /purse = 18, /till = 33')
    assert screen.left == 1


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
        if piece == Speech(" lighthouse") and not screen.notes(Tone.BAD):
            press.send_nowait(signal.SIGINT)

    screen = Recorder(react=interrupt_once)
    await play(tavern_cast(), Script("Any rumours?", "Any rumours?"), screen, interrupts)
    interrupted, closed = screen.notes(Tone.BAD)
    assert interrupted == "interrupted: canceled"
    assert closed.startswith("fail_closed c-")
    first, second = screen.speech().split("Lean closer.")[1:]
    assert first == "They say the old lighthouse"
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


# -- real processes, because pipes, terminals and signals are theirs: these wait in real time for what they expect

PLAY = (sys.executable, "-m", "footlights_transports", "play")


def test_piped_input_is_played_line_by_line_as_plain_text() -> None:
    said = (
        "Hello\n\nI'll take the garden room\nrent the gable room\nrent the attic for 1 coin\n" + "x" * 70_000 + "\nbye"
    )
    done = subprocess.run(PLAY, input=said, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("> ")][:2] == ["> Hello", "> I'll take the garden room"]
    assert '  · /rooms/garden/guest = "the traveller", /purse = 15, /till = 36' in lines
    assert "  ✗ rent_room: The book has Mirel the tinker in the gable room." in lines
    assert any(line.startswith("  ✗ fail_closed c-") for line in lines)
    assert "  ✗ too_large: The input is longer than 65536 bytes (max_input_bytes)." in lines
    assert sum(line.startswith("  ✓ committed c-") for line in lines) == 4


def test_a_file_can_be_played_too_and_its_characters_need_not_be_known(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("Hello\n", encoding="utf-8")
    with script.open("rb") as lines:
        ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(PLAY, stdin=lines, capture_output=True, text=True, timeout=60, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  ? committed c-" in done.stdout


def test_an_interrupt_ends_a_piped_play_without_a_traceback() -> None:
    process = subprocess.Popen(PLAY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        assert any(b"committed" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        _, complaints = process.communicate()
    assert complaints == b""


class Terminal:
    """A process at a terminal of its own, as a person would see it."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        # A new session has no terminal until it takes one, and without one Ctrl-C is only a character.
        taking_it = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{taking_it}\nfrom footlights_transports.main import main\nmain()", "play"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._unread = ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read_until(self, expected: str) -> str:
        while expected not in self._unread:
            shown = self._read()
            assert shown, f"{expected!r} was not shown, only {self._unread!r}"
            self._unread += shown
        seen, self._unread = self._unread.split(expected, 1)
        return seen

    def read_rest(self) -> str:
        while shown := self._read():
            self._unread += shown
        return self._unread

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def _read(self) -> str:
        ready, _, _ = select.select([self._master], [], [], 30)
        assert ready, f"nothing more was shown after {self._unread!r}"
        try:
            return os.read(self._master, 65_536).decode(errors="replace")
        except OSError:  # how Linux says that nobody has the terminal open any more
            return ""


@pytest.fixture
def terminal() -> Generator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_ctrl_c_in_mid_sentence_interrupts_the_innkeeper_and_ctrl_d_leaves(terminal: Terminal) -> None:
    terminal.read_until("> ")
    terminal.type("What does it cost?\n")
    assert "is loading" in terminal.read_until("is ready after a cold start")
    terminal.read_until("An ale")
    terminal.type("\x03")
    assert "a bishop" not in terminal.read_until("interrupted: canceled")
    terminal.read_until("fail_closed c-")
    terminal.read_until("> ")
    terminal.type("Hello\n")
    terminal.read_until("committed c-")
    terminal.read_until("> ")
    terminal.type("\x04")
    rest = terminal.read_rest()
    assert "The door closes behind you." in rest
    assert "Traceback" not in rest
    assert terminal.process.wait(timeout=60) == 0


def test_ctrl_c_at_the_prompt_leaves(terminal: Terminal) -> None:
    terminal.read_until("> ")
    terminal.type("half a senten")
    terminal.read_until("senten")
    terminal.type("\x03")
    rest = terminal.read_rest()
    assert "The door closes behind you." in rest
    assert "Traceback" not in rest
    assert terminal.process.wait(timeout=60) == 0
