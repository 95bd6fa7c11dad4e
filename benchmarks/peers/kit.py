"""Kit of the peers: the turn that all of them play, its measurement, and the protocol between the race and a peer.

Only the standard library is used here, because each peer runs in an environment of its own, without Footlights.

The turn: the player asks; the consumer gets an accepted event, 200 token deltas, and the end. The model
speaks in one of four manners. `flooding` never waits. `yielding` lets others run after each token, as a model does
whose tokens come from elsewhere. `endless` yields and does not end: it is cancelled after half a turn. `stalled`
says its 200 tokens and stays open.

The race writes one JSON object a line: `{"do": "turns", "count": 50, "manner": "flooding"}`, `{"do": "cancel",
"count": 50}` or `{"do": "memory", "count": 50}`. Each is answered by one line. A peer ends when its input does.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import tracemalloc
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

Manner: TypeAlias = Literal["flooding", "yielding", "endless", "stalled"]

TOKEN = " word"
TOKENS = 200
TEXT = TOKEN * TOKENS


@dataclass
class Played:
    """Times are in seconds."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the whole process: what else the machine does slows a turn, but costs it none of these."""
    events: int = 0
    """Events that the consumer took, including those that were joined into another."""
    given: int = 0
    """The objects that it took."""
    first_event: list[float] = field(default_factory=list[float])
    first_token: list[float] = field(default_factory=list[float])


@dataclass
class Cancelled:
    """In seconds, from just before the call that cancels."""

    told: list[float] = field(default_factory=list[float])
    """Until the consumer knew that the turn is over."""
    stopped: list[float] = field(default_factory=list[float])
    """Until it knew, and the model had been closed."""

    def note(self, asked: float, told: float, silent: float) -> None:
        """All three as `perf_counter` gave them."""
        self.told.append(told - asked)
        self.stopped.append(max(told, silent) - asked)


@dataclass(frozen=True)
class Weight:
    """In bytes, for each player with an open turn that has said everything."""

    allocated: float
    """By Python."""
    resident: float | None
    """Of the process, where the system reports it: with stacks, and with what the allocator keeps."""


class Peer(Protocol):
    def play(self, turns: int, manner: Manner) -> Played:
        """One turn after the other, each to its end. What a session needs is made before the clock starts."""
        ...

    def cancel(self, turns: int) -> Cancelled:
        """Endless turns, one after the other, each cancelled by another task when the consumer has heard half."""
        ...

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        """Weigh before there is any player, and again when all have an open turn and have heard all of it."""
        ...


class Consumer:
    """Consumer of a turn: counts events, joins the text, times the first event, checks that no token is missing."""

    def __init__(self) -> None:
        self.played = Played()
        self._asked = 0.0
        self._began = (0.0, 0.0)
        self._started = False
        self._pieces: list[str] = []
        self._heard = 0

    def start(self) -> None:
        """The first turn of a lap comes now."""
        self._began = (perf_counter(), process_time())

    def stop(self) -> None:
        """The last turn of a lap is over."""
        began, cpu_began = self._began
        self.played.seconds = perf_counter() - began
        self.played.cpu_seconds = process_time() - cpu_began

    def ask(self) -> None:
        """The player asks now."""
        self._started = False
        self._pieces = []
        self._heard = 0
        self._asked = perf_counter()

    def take(self, joined: int = 0) -> None:
        """An event, into which so many others were joined."""
        if not self._started:
            self._started = True
            self.played.first_event.append(perf_counter() - self._asked)
        self.played.given += 1
        self.played.events += 1 + joined

    def hear(self, text: str, joined: int = 0) -> None:
        """A token delta."""
        self.take(joined)
        if not self._pieces:
            self.played.first_token.append(perf_counter() - self._asked)
        self._pieces.append(text)
        self._heard += len(text)

    @property
    def has_heard_half(self) -> bool:
        return self._heard >= len(TEXT) // 2

    def check(self) -> None:
        """At the end of a turn."""
        if "".join(self._pieces) != TEXT:
            raise AssertionError("The consumer did not hear what the model said.")


def resident() -> int:
    """Resident memory of this process, or 0 where the system does not report it."""
    gc.collect()
    pages = Path("/proc/self/statm")
    return int(pages.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


def allocated() -> int:
    """Bytes that Python has allocated since tracemalloc was started."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def weigh(peer: Peer, turns: int) -> Weight:
    """The resident memory first, while nothing was freed that could be used again, and without the tracing."""
    before, after = peer.hold(turns, resident)
    grown = (after - before) / turns if before else None
    tracemalloc.start()
    try:
        before, after = peer.hold(turns, allocated)
    finally:
        tracemalloc.stop()
    return Weight((after - before) / turns, grown)


def answer(peer: Peer, order: dict[str, Any]) -> dict[str, Any]:
    """One order of the race."""
    gc.collect()
    match order["do"]:
        case "turns":
            return asdict(peer.play(order["count"], order["manner"]))
        case "cancel":
            return asdict(peer.cancel(order["count"]))
        case "memory":
            return asdict(weigh(peer, order["count"]))
        case unknown:
            raise ValueError(f"There is no order {unknown!r}.")


def serve(peer: Peer, packages: Sequence[str]) -> None:
    """Greet with the versions of the packages, then answer orders until the input ends."""
    # Whatever a framework prints must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    _say(answers, {"python": platform.python_version(), "packages": {name: version(name) for name in packages}})
    for line in sys.stdin:
        _say(answers, answer(peer, json.loads(line)))


def stages_asked_for() -> int:
    """How many stages the race wants, where a peer has stages that tokens pass."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else 5


def _say(answers: TextIO, what: dict[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()
