"""JSON lines for scripts: commands on the input, native events on the output, nothing else.

    {"say": "A room?"}                       begins a turn, after those that are open
    {"say": "Yes.", "params": {"approvals": {"a-000001": true}}}
    {"cancel": true}                         interrupts every open turn; {"cancel": "t1-000001"} that one

A line that is refused is reported on standard error, as {"error": {"code": ..., "message": ...}}. At the end of the
input the turns that are open run to their commits; a stream that ends before them is reported in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
import trio

from footlights import CommitFinal, FootlightsError, TurnParams, wire
from footlights.errors import InvalidCommand, SessionClosed
from footlights.wire.values import Unfit
from footlights_transports.client.protocol import ConnectionLost
from footlights_transports.errors import BadFrame, error_json
from footlights_transports.json_text import read_object
from footlights_transports.views.native.protocol import read_turn_params

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.cli.play.games import Events, Game
    from footlights_transports.cli.play.lines import Lines

_FORMS = 'A line is {"say": "..."}, with params if you like, or {"cancel": true}.'


async def play_script(
    game: Game,
    lines: Lines,
    show: Callable[[bytes], object],
    complain: Callable[[bytes], object],
    *,
    persona: str | None = None,
) -> int:
    """Obey the lines until they end and every turn is committed. Returns how many lines were refused, or not finished.

    `persona` is that of turns whose params name none.
    """
    script = _Script(game, show, complain, persona)
    async with trio.open_nursery() as nursery:
        await nursery.start(script.follow)
        with script.obeying:
            try:
                while (line := await lines.receive("")) is not None:
                    if line.strip():
                        await script.obey(line)
                await script.wait_for_commits()
            except (FootlightsError, OSError) as error:  # raised again outside of the nursery, which would wrap it
                script.failure = error
        nursery.cancel_scope.cancel(reason="the script is over")
    if script.failure is not None:
        raise script.failure
    return script.failed


class _Script:
    def __init__(
        self,
        game: Game,
        show: Callable[[bytes], object],
        complain: Callable[[bytes], object],
        persona: str | None,
    ) -> None:
        self._game = game
        self._persona = persona
        self._show = show
        self._complain = complain
        self._open: set[str] = set()
        self._committed: set[str] = set()
        """The turns whose commit came before the reply that names them."""
        self._has_ended = False
        """Whether no more events come."""
        self._changed = trio.Event()
        self.obeying = trio.CancelScope()
        """Around the lines: without the stream, they cannot be obeyed any more."""
        self.failure: BaseException | None = None
        self.failed = 0

    async def follow(self, task_status: trio.TaskStatus[None]) -> None:
        """Write every event of the session, until cancelled."""
        async with self._game.subscribe() as stream:
            task_status.started()
            try:
                await self._write(stream)
                self._has_ended = True
                self._changed.set()
            except (FootlightsError, OSError) as error:
                self.failure = error
                self.obeying.cancel(reason="the stream has failed")

    async def _write(self, stream: Events) -> None:
        async for event in stream:
            self._show(wire.encode(event))
            if isinstance(event.payload, CommitFinal):
                self._committed.add(event.turn_id)
                self._changed.set()

    async def obey(self, line: str) -> None:
        try:
            await self._obey(_read(line))
        except ConnectionLost:
            raise
        except FootlightsError as error:
            self._fail(error)

    async def _obey(self, command: dict[str, Any]) -> None:
        match command:
            case {"say": str(said), **others} if not others.keys() - {"params"}:
                params = _params({"persona": self._persona, **_object(others.get("params", {}))})
                self._open.add(await self._game.begin_turn(said, params))
            case {"cancel": True, **others} if not others:
                await self._game.cancel()
            case {"cancel": str(turn_id), **others} if not others:
                await self._game.cancel(turn_id)
            case _:
                raise InvalidCommand(_FORMS)

    async def wait_for_commits(self) -> None:
        while not self._open <= self._committed:
            if self._has_ended:
                self._fail(SessionClosed("The stream ended before the commit of a turn."))
                return
            self._changed = trio.Event()
            await self._changed.wait()

    def _fail(self, error: FootlightsError) -> None:
        self.failed += 1
        self._complain(orjson.dumps({"error": error_json(error)}))


def _read(line: str) -> dict[str, Any]:
    try:
        return read_object(line)
    except BadFrame:
        raise InvalidCommand(_FORMS) from None


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidCommand("params: must be an object")
    return cast("dict[str, object]", value)


def _params(value: object) -> TurnParams:
    try:
        params: TurnParams = read_turn_params(value)
    except Unfit as error:
        raise InvalidCommand(f"params: {error.field or ''} {error}") from None
    return params
