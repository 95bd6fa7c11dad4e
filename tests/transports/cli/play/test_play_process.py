"""`footlights play` as a process, in a pipe and in a terminal.

These wait in real time for what they expect, because pipes, terminals and signals are the system's.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("interruptible")

PLAY = (sys.executable, "-m", "footlights_transports", "play")


def test_piped_input_is_played_line_by_line_as_plain_text() -> None:
    said = (
        "Hello\n\nI'll take the garden room\nrent the gable room\nrent the attic for 1 coin\n" + "x" * 70_000 + "\nbye"
    )
    done = subprocess.run(PLAY, input=said, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")  # one line is refused
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("> ")][:2] == ["> Hello", "> I'll take the garden room"]
    assert "  · rooms, garden, guest: the traveller; purse: 15; till: 36" in lines
    assert "  ✗ rent_room: The book has Mirel the tinker in the gable room." in lines
    assert any(line.startswith("  ✗ nothing changed (fail_closed c-") for line in lines)
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
        assert any(b"nothing changed" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        _, complaints = process.communicate()
    assert complaints == b""


class Terminal:
    """A process at a terminal of its own, as a person would see it."""

    def __init__(self, *options: str) -> None:
        self._master, slave = pty.openpty()
        self.first_settings = self.settings()
        # A new session has no terminal until it takes one, and without one Ctrl-C is only a character.
        taking_it = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"{taking_it}\nfrom footlights_transports.cli.main import main\nmain()",
                "play",
                *options,
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(slave)
        self._unread = ""

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._master)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read_until(self, expected: str) -> str:
        while expected not in self._unread:
            shown = self._read()
            assert shown, f"{expected!r} was not shown, only {self._unread!r}"
            self._unread += shown
        seen, self._unread = self._unread.split(expected, 1)
        return seen

    def must_be_left_in_order(self) -> None:
        while shown := self._read():
            self._unread += shown
        assert "The door closes behind you." in self._unread
        assert "Traceback" not in self._unread
        assert self.process.wait(timeout=60) == 0

    def rest(self) -> str:
        """What is shown until the process ends."""
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
    assert "There is no game.toml in this folder, so you play the tavern.\r\n" in terminal.read_until("> ")
    terminal.type("What does it cost?\n")
    assert "is loading" in terminal.read_until("is ready after a cold start")
    terminal.read_until("In coins")
    terminal.type("\x03")
    assert "the lantern" not in terminal.read_until("interrupted: canceled")
    terminal.read_until("fail_closed c-")
    terminal.read_until("> ")
    terminal.type("Hello\n")
    terminal.read_until("committed c-")
    terminal.read_until("> ")
    terminal.type("\x04")
    terminal.must_be_left_in_order()


def test_ctrl_c_at_the_prompt_discards_the_line_and_a_second_one_leaves(terminal: Terminal) -> None:
    terminal.read_until("> ")
    terminal.type("half a senten")
    terminal.read_until("senten")
    terminal.type("\x03")
    terminal.read_until("Ctrl-C again leaves.")
    terminal.read_until("> ")
    terminal.type("\x03")
    terminal.must_be_left_in_order()


def test_a_signal_at_the_prompt_keeps_the_line_and_a_second_one_leaves(terminal: Terminal) -> None:
    """A Ctrl-C that was meant for a turn may come when the turn is over."""
    terminal.read_until("> ")
    terminal.type("half a senten")
    terminal.read_until("senten")
    before = terminal.settings()
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until("Ctrl-C again leaves.")
    terminal.read_until("> ")
    assert terminal.settings() == before
    terminal.process.send_signal(signal.SIGINT)
    terminal.must_be_left_in_order()


def test_the_terminal_is_left_as_it_was(terminal: Terminal) -> None:
    terminal.read_until("> ")
    assert terminal.settings()[6][termios.VINTR] == b"\0"
    terminal.type("Hello\n")
    terminal.read_until("Innkeeper:")
    assert terminal.settings() == terminal.first_settings
    terminal.read_until("> ")
    terminal.type("\x04")
    terminal.must_be_left_in_order()
    assert terminal.settings() == terminal.first_settings


def test_a_line_can_be_edited_and_called_back(terminal: Terminal) -> None:
    terminal.read_until("> ")
    terminal.type("Helo\x1b[Dl\n")  # the left arrow, and a letter in between
    terminal.read_until("committed c-")
    terminal.read_until("> ")
    terminal.type("/world\n")
    terminal.read_until("purse: 20")
    terminal.read_until("> ")
    terminal.type("\x1b[A\x1b[A")
    terminal.read_until("Hello")
    terminal.type("\n")
    terminal.read_until("committed c-")
    terminal.read_until("> ")
    terminal.type("/quit\n")
    terminal.must_be_left_in_order()


def test_ctrl_c_leaves_while_a_server_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, closing(Terminal("--url", _url(silent))) as terminal:
        accepted, _ = silent.accept()
        with accepted:
            accepted.recv(1)
            terminal.type("\x03")
            shown = terminal.rest()
            assert terminal.process.wait(timeout=60) == 130
    assert "Traceback" not in shown
    assert "connected" not in shown


def _url(server: socket.socket) -> str:
    return f"ws://127.0.0.1:{server.getsockname()[1]}"
