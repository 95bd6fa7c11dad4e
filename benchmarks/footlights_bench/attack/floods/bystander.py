"""Bystander: a program that pings, plays turns and sends HTTP requests as another user during an attack.

Pings are sent at a fixed pace, whether or not earlier ones were answered, so a stall counts for as long as it lasts. A
ping without an answer counts with the time that the bystander waited for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import trio
from attrs import Factory, asdict, define

from footlights_bench.attack.floods.processes import BYSTANDER, run_child
from footlights_bench.attack.raw.http import ask
from footlights_bench.attack.raw.websocket import TEXT, command, frame, open_websocket
from footlights_bench.attack.target import CannotAttack, target_from_json

if TYPE_CHECKING:
    from footlights_bench.attack.raw.websocket import WebSocket
    from footlights_bench.attack.target import Target
    from footlights_bench.lib.processes import JsonLines

PINGS_PER_SECOND = 50
PAUSE_BETWEEN_TURNS = 0.05
PAUSE_BETWEEN_REQUESTS = 0.2
LAST_ANSWERS = 10.0
"""Seconds that answers may take after the last phase has ended."""


@define
class Phase:
    """The measurements of one phase. Times are in milliseconds."""

    pings: list[float] = Factory(list[float])
    late: list[float] = Factory(list[float])
    """How late the bystander itself woke up, which is caused by the machine and not by the server."""
    http: list[float] = Factory(list[float])
    turns: Counter[str] = Factory(Counter[str])
    """By the outcome of their commits, or the code of the error."""
    problems: Counter[str] = Factory(Counter[str])


class Bystander:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._phases: defaultdict[str, Phase] = defaultdict(Phase)
        self._phase = "warm-up"
        self._ended = False
        self._pings: dict[int, tuple[float, Phase]] = {}
        self._turn: tuple[str, Phase] | None = None
        self._replies: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}
        self._commits: dict[str, str] = {}
        self._committed = trio.Condition()
        self._next_id = 0

    async def watch(self, lines: JsonLines) -> None:
        target = self._target
        async with open_websocket(target.websocket, target.other_token) as socket, trio.open_nursery() as nursery:
            nursery.start_soon(self._read, socket)
            started = await self._ask(socket, "start")
            if not started["ok"]:
                raise CannotAttack(f"The bystander may not start a session: {started['error']['code']}.")
            session_id = started["result"]["session_id"]
            await self._ask(socket, "subscribe", session_id=session_id)
            await self._play(socket, session_id)
            await lines.send("ready")
            async with trio.open_nursery() as working:
                working.start_soon(self._ping, socket)
                working.start_soon(self._play_on, socket, session_id)
                working.start_soon(self._request)
                await self._follow(lines)
                working.cancel_scope.deadline = trio.current_time() + LAST_ANSWERS
            self._give_up()
            nursery.cancel_scope.cancel()
        await lines.send({name: asdict(phase) for name, phase in self._phases.items()})

    async def _follow(self, lines: JsonLines) -> None:
        """Receive the names of phases until `end`."""
        async for phase in lines:
            if phase == "end":
                break
            self._phase = phase
            self._phases[phase] = Phase()
        self._ended = True

    async def _read(self, socket: WebSocket) -> None:
        while (message := await socket.receive_message(seconds=3600)) is not None:
            if message.get("event_type") == "commit_final":
                async with self._committed:
                    self._commits[message["turn_id"]] = message["payload"]["commit_outcome"]
                    self._committed.notify_all()
            elif (number := message.get("reply")) in self._pings:
                self._note_pong(number, message)
            elif number in self._replies:
                self._replies.pop(number).send_nowait(message)
            elif "notice" in message:
                self._now.problems[f"its session {message['notice']}"] += 1
        self._now.problems["its connection was closed"] += 1
        for waiting in self._replies.values():
            waiting.close()
        self._replies.clear()

    def _note_pong(self, number: int, message: dict[str, Any]) -> None:
        sent, phase = self._pings.pop(number)
        phase.pings.append((trio.current_time() - sent) * 1000)
        if not message["ok"]:
            phase.problems[f"its ping got {message['error']['code']}"] += 1

    @property
    def _now(self) -> Phase:
        return self._phases[self._phase]

    def _number(self) -> int:
        self._next_id += 1
        return self._next_id

    async def _ping(self, socket: WebSocket) -> None:
        due = trio.current_time()
        while not self._ended:
            due += 1 / PINGS_PER_SECOND
            await trio.sleep_until(due)
            number, phase, now = self._number(), self._now, trio.current_time()
            phase.late.append((now - due) * 1000)
            self._pings[number] = (now, phase)
            try:
                await socket.send(frame(TEXT, command("ping", number)))
            except trio.BrokenResourceError:
                return
        while self._pings:  # noqa: ASYNC110
            await trio.sleep(0.01)

    def _give_up(self) -> None:
        now = trio.current_time()
        for sent, phase in self._pings.values():
            phase.pings.append((now - sent) * 1000)
            phase.problems["a ping was never answered"] += 1
        if self._turn is not None:
            self._turn[1].turns[f"nothing ({self._turn[0]})"] += 1

    async def _play_on(self, socket: WebSocket, session_id: str) -> None:
        while not self._ended:
            await self._play(socket, session_id)
            await trio.sleep(PAUSE_BETWEEN_TURNS)

    async def _play(self, socket: WebSocket, session_id: str) -> None:
        phase = self._now
        self._turn = ("no reply to begin_turn", phase)
        try:
            reply = await self._ask(socket, "begin_turn", session_id=session_id, input="Good evening.")
        except CannotAttack as error:
            phase.problems[str(error)] += 1
            await trio.sleep_forever()  # no further turn can be played
        if reply["ok"]:
            turn_id = reply["result"]["turn_id"]
            self._turn = ("no commit_final", phase)
            async with self._committed:
                while turn_id not in self._commits:
                    await self._committed.wait()
            phase.turns[self._commits.pop(turn_id)] += 1
        else:
            phase.turns[reply["error"]["code"]] += 1
        self._turn = None

    async def _ask(self, socket: WebSocket, op: str, **fields: object) -> dict[str, Any]:
        number = self._number()
        sending, receiving = trio.open_memory_channel[dict[str, Any]](1)
        self._replies[number] = sending
        try:
            await socket.send(frame(TEXT, command(op, number, **fields)))
            return await receiving.receive()
        except (trio.BrokenResourceError, trio.EndOfChannel):
            raise CannotAttack("its connection was closed") from None

    async def _request(self) -> None:
        """Requests one after the other, each on a new connection, in turn without a token and with one."""
        run_command = [("/healthz", None), ("/v1/world", self._target.other_token)]
        while not self._ended:
            for path, token in run_command:
                phase, began = self._now, trio.current_time()
                try:
                    response = await ask(self._target.http, "GET", path, token=token)
                except (OSError, trio.TooSlowError, trio.BrokenResourceError):
                    response = None
                phase.http.append((trio.current_time() - began) * 1000)
                if response is None or response.status != 200:
                    answer = "no answer" if response is None else response.status
                    phase.problems[f"GET {path} got {answer}"] += 1
                await trio.sleep(PAUSE_BETWEEN_REQUESTS)


async def work(job: Any, lines: JsonLines) -> None:
    await Bystander(target_from_json(job)).watch(lines)


if __name__ == "__main__":
    run_child(work, niceness=BYSTANDER)
