"""The turn with Pykka: an actor for each stage, and one for the consumer, each with a thread and an inbox.

Written as Pykka's documentation has it: plain messages with `tell`, dispatched in `on_receive`, no actor ever waits for
another, and the host waits for a `ThreadingFuture`. The actors live as long as the session, since starting threads for
each turn would be slower.

An actor handles one message at a time, so an actor that speaks cannot be told to stop by a message, and `stop()` would
wait behind it. The quickest way that remains is a flag that comes with the turn: the generator looks at it for each
token, and the stages let the tokens of a cancelled turn fall, so that the end need not wait behind them.
"""

# pyright: basic, reportMissingImports=false
# Pykka is installed only in the environment of this peer, where no type checker runs.

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pykka

from peers.kit import TEXT, TOKEN, TOKENS, Cancelled, Consumer, Played, serve, stages_asked_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peers.kit import Manner


class Turn:
    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.cancelled = Event()
        self.halfway = Event()
        self.said = Event()
        self.over: Any = pykka.ThreadingFuture()
        self.silent_at = 0.0


@dataclass(frozen=True, slots=True)
class Accepted:
    turn: Turn


@dataclass(frozen=True, slots=True)
class Token:
    turn: Turn
    text: str


@dataclass(frozen=True, slots=True)
class Final:
    turn: Turn
    text: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    turn: Turn


class Generator(pykka.ThreadingActor):
    def __init__(self, following: Any) -> None:
        super().__init__()
        self._following = following

    def on_receive(self, message: Turn) -> None:
        self._following.tell(Accepted(message))
        for text in _speak(message):
            if message.cancelled.is_set():
                break
            self._following.tell(Token(message, text))
        message.silent_at = perf_counter()
        self._following.tell(Interrupted(message) if message.cancelled.is_set() else Final(message, TEXT))


class PassOn(pykka.ThreadingActor):
    def __init__(self, following: Any) -> None:
        super().__init__()
        self._following = following

    def on_receive(self, message: Any) -> None:
        if isinstance(message, Token) and message.turn.cancelled.is_set():
            return
        self._following.tell(message)


class Listener(pykka.ThreadingActor):
    def __init__(self, consumer: Consumer) -> None:
        super().__init__()
        self._consumer = consumer

    def on_receive(self, message: Any) -> None:
        match message:
            case Token(turn, text):
                self._consumer.hear(text)
                if turn.manner == "endless" and self._consumer.has_heard_half:
                    turn.halfway.set()
                elif turn.manner == "stalled" and self._consumer.played.given == TOKENS + 1:
                    turn.said.set()
            case Final(turn):
                self._consumer.take()
                turn.over.set(perf_counter())
            case Interrupted(turn):
                turn.over.set(perf_counter())
            case _:
                self._consumer.take()


class Session:
    def __init__(self, stages: int) -> None:
        self.consumer = Consumer()
        following: Any = Listener.start(self.consumer)
        self._actors = [following]
        for _ in range(stages - 1):
            following = PassOn.start(following)
            self._actors.append(following)
        self._generator = Generator.start(following)

    def begin(self, turn: Turn) -> None:
        self.consumer.ask()
        self._generator.tell(turn)

    def close(self) -> None:
        for actor in [self._generator, *reversed(self._actors)]:
            actor.stop()


class Pykka:
    def __init__(self, stages: int) -> None:
        self._stages = stages

    def play(self, turns: int, manner: Manner) -> Played:
        session = Session(self._stages)
        session.consumer.start()
        for _ in range(turns):
            turn = Turn(manner)
            session.begin(turn)
            turn.over.get()
            session.consumer.check()
        session.consumer.stop()
        session.close()
        return session.consumer.played

    def cancel(self, turns: int) -> Cancelled:
        cancelled = Cancelled()
        session = Session(self._stages)
        for _ in range(turns):
            turn = Turn("endless")
            session.begin(turn)
            turn.halfway.wait()
            asked = perf_counter()
            turn.cancelled.set()
            told = turn.over.get()
            cancelled.note(asked, told, turn.silent_at)
        session.close()
        return cancelled

    def hold(self, turns: int, weigh: Callable[[], int]) -> tuple[int, int]:
        before = weigh()
        sessions = [Session(self._stages) for _ in range(turns)]
        open_turns = [Turn("stalled") for _ in sessions]
        for session, turn in zip(sessions, open_turns, strict=True):
            session.begin(turn)
        for turn in open_turns:
            turn.said.wait()
        after = weigh()
        for session, turn in zip(sessions, open_turns, strict=True):
            turn.cancelled.set()
            session.close()
        return before, after


def _speak(turn: Turn) -> Iterator[str]:
    waits = turn.manner in {"yielding", "endless"}
    said = 0
    while said < TOKENS or turn.manner == "endless":
        yield TOKEN
        said += 1
        if waits:
            time.sleep(0)  # lets another thread have the interpreter
    if turn.manner == "stalled":
        turn.cancelled.wait()


if __name__ == "__main__":
    serve(Pykka(stages_asked_for()), ["pykka"])
