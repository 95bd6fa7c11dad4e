"""Fast path: with any events between tokens, every subscriber gets what it would get without the fast path."""

from __future__ import annotations

from typing import TypeAlias

import trio
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

from footlights import (
    Ext,
    IllegalTransition,
    InterruptReason,
    Limits,
    TokenDelta,
    ToolCallStarted,
    TurnParams,
)
from footlights.speaker import Speaker
from footlights.stream.fast_path import NONE
from footlights.stream.outbox import Outbox
from footlights.turn.turn import Clock, Turn, WallClock
from footlights_actors import standard_cast

Command: TypeAlias = tuple[str, int, int]
"""The action, its turn or subscriber, and its amount."""

TURNS = ("t1-000001", "t1-000002", "t1-000003")


class House:
    """Turns beside each other, and whoever listens. If it asks always, no token finds a budget."""

    def __init__(self, limits: Limits, *, asks_always: bool) -> None:
        self.limits = limits
        self.remote_models = False
        self.speaker = Speaker("s1")
        self.cast = standard_cast()
        self.clock: Clock = trio.current_time
        self.wall_clock: WallClock = trio.current_time
        self.outboxes: tuple[Outbox, ...] = ()
        self._asks_always = asks_always
        self._came: list[Outbox] = []
        self._wakes = 0
        self._turns = [Turn(self, "s1", turn_id, "A room?", TurnParams()) for turn_id in TURNS]
        self._join(-1)
        for turn in self._turns:
            turn.accept(0)
            turn.run()

    def turn_stopping(self, turn: Turn) -> None: ...
    def turn_ended(self, turn: Turn) -> None: ...
    def turn_settled(self, turn: Turn) -> None: ...

    def do(self, what: str, which: int, much: int) -> object:
        """Everything that somebody could notice of it."""
        turn, outbox = self._turns[which % len(self._turns)], self._came[which % len(self._came)]
        noticed: object = None
        try:
            match what:
                case "take":
                    noticed = [outbox.take() for _ in range(much)]
                case "join":
                    self._join(turn.replay.next_seq - much)
                case "leave":
                    self._let_go(outbox)
                case _:
                    self._speak(turn, what, much)
        except IllegalTransition as error:
            noticed = str(error)
        return noticed, self._wakes, [(each.statistics(), each.detached) for each in self._came]

    def rest(self) -> object:
        """What is left to take, and what one who comes later would be told."""
        left = [list(iter(each.take, None)) for each in self._came]
        return left, [list(turn.replay.events()) for turn in self._turns]

    def _speak(self, turn: Turn, what: str, much: int) -> None:
        match what:
            case "say":
                for number in range(much):
                    if self._asks_always:
                        turn.replay.fast_path.until_seq = NONE
                    turn.say("é" * (number % 3 + 1))
            case "ext":
                turn.say_with_ext(TokenDelta("!", 0, ext=Ext("ext.acme.mood", much)))
            case "tool":
                turn.start_tool(ToolCallStarted(f"c{turn.replay.next_seq}", "rent_room"))
            case "report":
                turn.abandon_tools()
            case _:
                turn.stop(InterruptReason.CANCELED)

    def _join(self, after: int) -> None:
        outbox = Outbox(self.limits, self._note_wake, self._let_go)
        for turn in self._turns:
            outbox.catch_up(turn.replay, max(-1, min(after, turn.replay.next_seq - 1)))
        self.outboxes = (*self.outboxes, outbox)
        self._came.append(outbox)

    def _note_wake(self) -> None:
        self._wakes += 1

    def _let_go(self, outbox: Outbox) -> None:
        outbox.close()
        self.outboxes = tuple(each for each in self.outboxes if each is not outbox)


async def play(limits: Limits, program: list[Command], clock: trio.testing.MockClock) -> None:
    house, careful = House(limits, asks_always=False), House(limits, asks_always=True)
    for command in program:
        if command[0] == "wait":
            clock.jump(command[2])
        else:
            assert house.do(*command) == careful.do(*command)
    assert house.rest() == careful.rest()


few_limits = st.builds(
    Limits,
    best_effort_max_events_per_turn=st.sampled_from((5, 9, 256)),
    bounded_max_events_per_turn=st.integers(1, 3),
    max_bytes_per_turn_queue=st.sampled_from((900, 1_700, 1_000_000)),
    max_turns_per_subscriber=st.sampled_from((1, 3, 3)),
    stall_detach=st.sampled_from((5.0, 30.0)),
)
# Mostly floods, and whoever takes takes all: a budget begins with the second token after that.
commands = st.tuples(
    st.sampled_from(("say",) * 9 + ("take",) * 4 + ("wait", "join", "leave", "ext", "tool", "report", "stop")),
    st.sampled_from((0, 0, 0, 1, 2)),
    st.sampled_from((1, 2, 3, 9)),
)


@settings(max_examples=300)
@example(Limits(), [("say", 0, 3), ("say", 1, 3), ("take", 0, 1), ("take", 0, 9), ("say", 0, 1), ("say", 1, 1)])
@example(Limits(), [("say", 0, 3), ("join", 0, 1), ("say", 0, 1), ("take", 1, 2)])
@example(Limits(), [("say", 0, 3), ("tool", 0, 1), ("say", 0, 3), ("stop", 0, 1), ("say", 0, 1), ("report", 0, 1)])
@example(Limits(stall_detach=2.0), [("say", 0, 2), ("wait", 0, 2), ("say", 0, 2), ("wait", 0, 1), ("say", 0, 1)])
@given(few_limits, st.lists(commands, min_size=10, max_size=50))
def test_the_fast_path_changes_nothing_for_any_subscriber(limits: Limits, program: list[Command]) -> None:
    clock = trio.testing.MockClock()
    trio.run(play, limits, program, clock, clock=clock)
