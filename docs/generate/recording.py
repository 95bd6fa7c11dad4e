"""Recording of `footlights play` in asciinema's format, version 2, and a still of it: its last picture as text.

    python docs/generate/recording.py       records docs/recording/play.cast

A person is played by a list of keys, each typed when the text before it was shown. The shell, the commands and the
terminal are real. The words are the same in each recording, the times are not.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

CAST = Path(__file__).parent.parent / "recording" / "play.cast"
WIDTH, HEIGHT = 80, 19
TERM = "xterm-256color"
PATIENCE = 30
"""Seconds to wait for a text."""
KEY_SECONDS = 0.04
"""Between two keys."""
THOUGHT_SECONDS = 0.6
"""Before a line is typed, so that a viewer can read what came before."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PARTS = re.compile(rf"([^\x00-\x1f\x7f]+)|({_ESCAPE.pattern}|[\x00-\x1f\x7f])")
_HARMLESS = re.compile(r"\x07|\x1b\[\?\d+[hl]|\x1b\[[\d;]*m")
"""The bell, modes of the terminal, colours."""

_SOUTH = "Take me to the south bank\n"
SCRIPT = (
    ("$ ", "footlights new my-game && cd my-game\n"),
    ("$ ", "footlights play\n"),
    ("> ", _SOUTH),
    ("Sit still,", "\x03"),
    ("\n> ", _SOUTH),
    ("purse: 3", ""),
    ("> ", ""),
)
"""What is waited for, and what is typed then. Ctrl-C interrupts the ferryman; a second crossing is committed."""


class Recorder:
    """A shell at a terminal of its own. It keeps what the terminal was sent, and when."""

    def __init__(self, folder: str) -> None:
        pid, self._terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            environ = {"PATH": path, "PS1": "$ ", "TERM": TERM, "LC_ALL": "C.UTF-8"}
            os.execve("/bin/sh", ["sh", "-i"], environ)
        self._pid = pid
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._text = codecs.getincrementaldecoder("utf-8")()
        self._began = time.monotonic()
        self._unseen = ""
        self.shown: list[tuple[float, str]] = []

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in _ESCAPE.sub("", self._unseen):
            if time.monotonic() > deadline:
                sys.exit(f"{text!r} was not shown, only {self._unseen!r}")
            self._watch(until=time.monotonic() + 0.1, once=True)
        self._unseen = ""

    def type(self, keys: str) -> None:
        if len(keys) == 1:
            os.write(self._terminal, keys.encode())
            return
        self._watch(until=time.monotonic() + THOUGHT_SECONDS)
        for key in keys:
            os.write(self._terminal, key.encode())
            self._watch(until=time.monotonic() + KEY_SECONDS)

    def close(self) -> None:
        os.close(self._terminal)
        os.waitpid(self._pid, 0)

    def _watch(self, *, until: float, once: bool = False) -> None:
        while (left := until - time.monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                piece = self._text.decode(os.read(self._terminal, 65_536))
                self.shown.append((round(time.monotonic() - self._began, 3), piece))
                self._unseen += piece
                if once:
                    return


def record() -> None:
    """Play the script, and write the recording."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(folder)
        try:
            for awaited, keys in SCRIPT:
                recorder.wait_for(awaited)
                recorder.type(keys)
        finally:
            recorder.close()
    header = {
        "version": 2,
        "width": WIDTH,
        "height": HEIGHT,
        "title": "footlights play",
        "env": {"TERM": "xterm-256color"},
    }
    rows = [header, *([at, "o", text] for at, text in recorder.shown)]
    CAST.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


# -- the still


def still() -> str:
    """The last picture of the recording, as a block of text."""
    header, *rows = [json.loads(line) for line in CAST.read_text(encoding="utf-8").splitlines()]
    lines = picture("".join(text for _, kind, text in rows if kind == "o"), header["height"])
    return "\n".join(["```text", *lines, "```"])


def picture(text: str, height: int) -> list[str]:
    """The lines of a terminal after this text, without empty ones at its end.

    It knows the control sequences that line editing and our screens use, and raises `ValueError` for any other.
    """
    lines, column = [""], 0
    for plain, control in _PARTS.findall(text):
        if plain:
            line = lines[-1].ljust(column)
            lines[-1] = line[:column] + plain + line[column + len(plain) :]
            column += len(plain)
        elif control == "\r":
            column = 0
        elif control == "\n":
            lines.append("")
        elif control == "\b":
            column -= 1
        elif control in ("\x1b[K", "\x1b[2K"):
            lines[-1] = lines[-1][:column] if control == "\x1b[K" else ""
        elif not _HARMLESS.fullmatch(control):
            raise ValueError(f"an unknown control sequence: {control!r}")
    lines = [line.rstrip() for line in lines[-height:]]
    while lines and not lines[-1]:
        lines.pop()
    return lines


if __name__ == "__main__":
    record()
