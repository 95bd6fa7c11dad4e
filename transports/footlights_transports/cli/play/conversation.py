"""Conversation of one player with an NPC, one turn at a time: lines in, pieces of output out.

An interrupt cancels the turn that runs. At the prompt it discards the line, and a second one leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    FootlightsError,
    ToolCallResult,
    ToolCallStarted,
    TurnParams,
)
from footlights.authority.pending import is_approval_id
from footlights.checks import listed
from footlights.notebooks.note_ids import ABOUT_A_NOTE
from footlights_transports.cli.play.explain import (
    note_questions,
    tell_help,
    tell_notes,
    tell_time,
    tell_why,
    tell_world,
)
from footlights_transports.cli.play.lines import DISCARDED
from footlights_transports.cli.screen import Typed
from footlights_transports.cli.turn_view import Narration, Tone, note, questions, with_changes
from footlights_transports.client.protocol import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from footlights import StreamEvent
    from footlights_transports.cli.play.games import Events, Game
    from footlights_transports.cli.play.lines import Lines
    from footlights_transports.cli.screen import Piece, Screen

PROMPT = "> "
ANSWER_SECONDS = 3.0
"""How long a server may take to answer a cancel."""
_YES_OR_NO = "[y/n] "
_WORDS = {"y": True, "yes": True, "n": False, "no": False}
_WITHOUT_SLASH = {"quit": "/quit", "exit": "/quit", "help": "/help"}
"""Words that, alone on a line, are meant as a command."""


async def converse(
    game: Game,
    lines: Lines,
    screen: Screen,
    interrupts: AsyncIterable[object] | None = None,
    *,
    persona: str | None = None,
) -> int:
    """Play until the lines end, or until two interrupts at the prompt. Returns how many turns failed.

    Raises `FootlightsError` if the game cannot go on.
    """
    conversation = Conversation(game, lines, screen, persona)
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            if interrupts is not None:  # a person, and not a file whose lines wait for their turns
                nursery.start_soon(conversation.take_interrupts, interrupts)
                nursery.start_soon(conversation.leave_if_away)
            try:
                with conversation.stay:
                    await conversation.run()
            except (FootlightsError, OSError) as error:  # raised again outside of the nursery, which would wrap it
                failure = error
            nursery.cancel_scope.cancel(reason="the player has left")
    finally:
        screen.leave()
    if failure is not None:
        raise failure
    return conversation.failed


class Conversation:
    """`failed` counts the turns that were refused, or did not come to their end."""

    def __init__(self, game: Game, lines: Lines, screen: Screen, persona: str | None = None) -> None:
        self._game = game
        self._lines = lines
        self._screen = screen
        self._persona = persona
        self._asking: trio.CancelScope | None = None
        self._questions: list[tuple[str, str]] = []
        """The ids and questions of approvals that the next lines are asked for."""
        self._waiting: list[str] = []
        """The ids of all approvals that were asked for and not yet answered."""
        self._last_turn: str | None = None
        self._tools: dict[str, str] = {}
        """The names of the last turn's tools, by the ids of their calls."""
        self._refusals: list[tuple[str, str]] = []
        """The tools of the last turn that failed or refused, and why."""
        self._is_unanswered = False
        """Whether the last cancel was not answered."""
        self._is_connected = True
        self._is_taking = False
        """Whether a line is being obeyed."""
        self._is_away = trio.Event()
        """The server is away while a line is being obeyed, so that a person can do nothing but wait or leave."""
        self._waiting_for_it = trio.CancelScope()
        self._prompting = trio.Lock()
        game.watch_connection(self._show_connection)
        self.stay = trio.CancelScope()
        self.failed = 0

    async def run(self) -> None:
        async with self._game.subscribe() as stream:
            while (line := await self._next_line()) is not None and not _quits(line):
                if line.strip():
                    self._screen.show(Typed(line))
                    self._is_taking = True
                    self._look_for_server()
                    await self._take(line, stream)
                    self._is_taking = False
                    self._look_for_server()

    async def leave_if_away(self) -> None:
        """Leave if the player says so while the server is away."""
        while True:
            await self._is_away.wait()
            with trio.CancelScope() as self._waiting_for_it:
                while self._is_away.is_set():
                    if (line := await self._next_line()) is None or _quits(line):
                        self.stay.cancel(reason="the player does not wait for the server")
                        return
                    if line.strip():
                        self._screen.show(note(Tone.BAD, "The server is away. /quit leaves."))

    def _look_for_server(self) -> None:
        if self._is_taking and not self._is_connected:
            self._is_away.set()
        elif self._is_away.is_set():
            self._is_away = trio.Event()
            self._waiting_for_it.cancel(reason="the server is back")

    async def take_interrupts(self, interrupts: AsyncIterable[object]) -> None:
        async for _ in interrupts:
            if self._asking is not None:
                self._asking.cancel(reason="the player interrupted the prompt")
            elif self._is_unanswered:
                self.stay.cancel(reason="the player does not wait for the server")
            else:
                await self._cancel_turn()

    async def _cancel_turn(self) -> None:
        with trio.move_on_after(ANSWER_SECONDS) as waiting:
            try:
                await self._game.cancel()
            except ConnectionLost:
                pass  # the stream of the turn that is followed raises it as well
            except FootlightsError as error:
                self._show_refusal(error)
        self._is_unanswered = waiting.cancelled_caught
        if self._is_unanswered:
            self._screen.show(note(Tone.BAD, "The server does not answer. Ctrl-C again leaves."))

    # -- lines

    async def _next_line(self) -> str | None:
        """The next line; None at the end of the input, or after a second interrupt."""
        async with self._prompting:
            return await self._prompted()

    async def _prompted(self) -> str | None:
        if self._questions:
            self._screen.show(note(Tone.ASIDE, f"{self._questions[0][1]} [y/n]"))
        prompt = _YES_OR_NO if self._questions else PROMPT
        for advice in ("Ctrl-C again leaves.", None):
            with trio.CancelScope() as self._asking:
                try:
                    line = await self._lines.receive(prompt)
                finally:
                    self._asking = None
                if line != DISCARDED:
                    return line
            if advice is not None:
                self._screen.show(note(Tone.ASIDE, advice))
        return None

    async def _take(self, line: str, stream: Events) -> None:
        try:
            turn_id = await self._obey(line)
        except FootlightsError as error:
            self._show_refusal(error)
            self.failed += 1
            return
        if turn_id is not None:
            await self._follow(turn_id, stream)

    async def _obey(self, line: str) -> str | None:
        """Do what a line says, and return the id of the turn that it began, if it did."""
        match _words(line):
            case ["/help"]:
                self._show(tell_help())
            case ["/world"]:
                self._show(tell_world(await self._game.world()))
            case ["/notes"]:
                self._show(tell_notes(await self._game.notes()))
            case ["/notes", "erase" | "agree" | "withdraw" as act]:
                self._show(tell_notes(await self._game.notes(act)))
            case ["/why"]:
                self._show(await self._why())
            case ["/yes" | "/no" as answer, id_] if is_approval_id(id_):
                return await self._begin_turn(line, {id_: answer == "/yes"})
            case ["/yes" | "/no" as answer] if len(self._waiting) == 1:
                return await self._begin_turn(f"{answer} {self._waiting[0]}", {self._waiting[0]: answer == "/yes"})
            case ["/yes" | "/no" as answer]:
                waiting = f"Say which: {answer} ID, of {listed(self._waiting)}." if self._waiting else "Nothing waits."
                self._screen.show(note(Tone.BAD, waiting))
            case [word] if (meant := _WITHOUT_SLASH.get(word.casefold())) is not None:
                self._screen.show(note(Tone.ASIDE, f"A command begins with a slash: {meant}"))
            case [word, *_] if word.startswith("/"):
                self._screen.show(note(Tone.BAD, "There is no such command. /help shows those that there are."))
            case [word] if self._questions and (yes := _WORDS.get(word.casefold())) is not None:
                return await self._begin_turn("Yes." if yes else "No.", {self._questions[0][0]: yes})
            case _:
                return await self._begin_turn(line, {})
        return None

    async def _why(self) -> list[Piece]:
        if self._last_turn is None:
            return [note(Tone.ASIDE, "Nothing was said yet.")]
        record = await self._game.record(self._last_turn)
        if record is None:
            return []
        summary = await self._game.summary(self._last_turn)
        took = [] if summary is None else tell_time(summary)
        return [*tell_why(record, self._tools, self._refusals), *took]

    # -- turns

    async def _begin_turn(self, said: str, answers: dict[str, bool]) -> str:
        if self._questions and not answers:
            id_, _ = self._questions.pop(0)
            self._screen.show(note(Tone.ASIDE, f"It waits for your answer: /yes {id_} or /no {id_}"))
        self._questions = [each for each in self._questions if each[0] not in answers]
        self._waiting = [each for each in self._waiting if each not in answers]
        return await self._game.begin_turn(said, TurnParams(persona=self._persona, approvals=answers))

    async def _follow(self, turn_id: str, stream: Events) -> None:
        self._last_turn, self._tools, self._refusals = turn_id, {}, []
        narration = Narration(self._game.name)
        async for event in stream.until_commit(turn_id):
            if event.turn_id == turn_id:
                await self._note(event, narration.tell(event))

    async def _note(self, event: StreamEvent, told: list[Piece]) -> None:
        match event.payload:
            case ToolCallStarted(tool_call_id=call, tool_name=name):
                self._tools[call] = name
            case ToolCallResult(tool_name=name, error=ErrorInfo(message=why)):
                self._refusals.append((name, why))
            case CommitFinal(commit_outcome=outcome) as commit:
                self.failed += outcome is not CommitOutcome.OK
                asked = await self._with_words(questions(commit))
                self._questions += asked
                self._waiting += [id_ for id_, _ in asked]
                await self._show_commit(event.turn_id, told)
                return
            case _:
                pass
        self._show(told)

    async def _with_words(self, asked: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The questions of a commit. Those about notes have no words of them, which only their owner may see."""
        if not any(question.startswith(ABOUT_A_NOTE) for _, question in asked):
            return asked
        try:
            return note_questions(asked, await self._game.notes())
        except FootlightsError as error:
            self._show_refusal(error)
            return asked

    async def _show_commit(self, turn_id: str, told: list[Piece]) -> None:
        try:
            record = await self._game.record(turn_id)
        except FootlightsError as error:
            self._show(told)
            self._show_refusal(error)
            return
        self._show(told if record is None else with_changes(told, record))

    # -- screen

    def _show(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self._screen.show(piece)

    def _show_refusal(self, error: FootlightsError) -> None:
        """Raises the error if there is no server any more."""
        if isinstance(error, ConnectionLost):
            raise error
        self._screen.show(note(Tone.BAD, f"{error.code}: {error}"))

    def _show_connection(self, is_connected: bool) -> None:
        """Once for each loss, although the commands and the stream both tell of it."""
        if is_connected != self._is_connected:
            self._is_connected = is_connected
            told = (Tone.GOOD, "connected again") if is_connected else (Tone.BAD, "connection lost, trying again …")
            self._screen.show(note(*told))
            self._look_for_server()


def _quits(line: str) -> bool:
    return line.strip().casefold() == "/quit"


def _words(line: str) -> list[str]:
    """The words of a line; the command that it begins with in lower case."""
    first, *rest = line.split()
    return [first.casefold() if first.startswith("/") else first, *rest]
