"""The process of a local model, from outside: a real process with an engine that misbehaves on cue.

Virtual time stands still unless a test moves it, so that no machine is too slow for them.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import aclosing, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from footlights import Cast, EventType, InterruptReason, StreamEvent, TurnInterrupted, open_stage
from footlights.errors import ExtraMissing, ModelError, ModelLoadFailed, PromptTooLarge, RegistrationError, StreamError
from footlights.events import ErrorInfo, WarmState
from footlights.models.model import Prompt, ToolOffer, ToolRequest, Usage
from footlights.testing import only, take_turn
from footlights_actors import standard_cast
from footlights_actors.models.local import engine as local_engine
from footlights_actors.models.local.model import LocalModel
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from footlights.models.model import Output
    from footlights_actors.models.local.model import ToolChoice

FAKE_ENGINE = ROOT / "tests/kit/models/fake_engine"

pytestmark = pytest.mark.usefixtures("fake_engine", "mock_clock")


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FAKE_ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(FAKE_ENGINE))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "some.gguf"
    _cue(file, b"load")
    return file


def _cue(weights: Path, loading: bytes) -> None:
    weights.write_bytes(b"GGUF" + loading)


def _ignore(progress: float) -> None:
    del progress


@asynccontextmanager
async def loaded(weights: Path, *, slots: int = 1, tool_choice: ToolChoice = "auto") -> AsyncGenerator[LocalModel]:
    model = LocalModel(weights, slots=slots, tool_choice=tool_choice)
    await model.load(_ignore)
    try:
        yield model
    finally:
        await model.unload()


async def _all(model: LocalModel, said: str, *tools: ToolOffer) -> list[Output]:
    return [item for item in await _all_and_signs_of_life(model, said, *tools) if item]


async def _all_and_signs_of_life(model: LocalModel, said: str, *tools: ToolOffer) -> list[Output]:
    async with aclosing(model.generate(Prompt(said, tools=tools))) as output:
        return [item async for item in output]


GREETING = ["Good ", "evening.", Usage(2, 7)]


async def test_it_is_cold_then_hot_then_warm(weights: Path) -> None:
    model = LocalModel(weights)
    states = [model.warm_state]
    for change in (model.load(_ignore), model.unload(), model.unload(), model.load(_ignore)):
        await change
        states.append(model.warm_state)
    assert states == [WarmState.COLD, WarmState.HOT, WarmState.WARM, WarmState.WARM, WarmState.HOT]
    assert await _all(model, "Hello", ToolOffer("pour", "Pour.")) == GREETING
    await model.unload()


async def test_it_has_the_name_of_its_file_or_another(weights: Path) -> None:
    assert LocalModel(weights).model_id == "some"
    assert LocalModel(weights, model_id="innkeeper").model_id == "innkeeper"


@pytest.mark.parametrize(
    ("file", "name"),
    [("My Model.gguf", "My-Model"), ("modèle\t1.gguf", "mod-le-1"), (f"{'x' * 200}.gguf", "x" * 128), ("~", "~")],
)
async def test_what_a_name_cannot_hold_is_not_in_it(weights: Path, file: str, name: str) -> None:
    model = LocalModel(await trio.Path(weights).rename(weights.with_name(file)))
    assert model.model_id == name
    async with open_stage(standard_cast(model)) as stage:
        assert [each.model_id for each in stage.models] == [name]


async def test_while_it_reads_it_gives_signs_of_life(weights: Path) -> None:
    async with loaded(weights) as model:
        assert await _all_and_signs_of_life(model, "read a little") == ["", "", "Yes.", Usage(2, 7)]


async def test_it_may_begin_in_a_thought(weights: Path) -> None:
    model = LocalModel(weights, begins_in_thought=True, tool_choice="required")
    await model.load(_ignore)
    assert await _all(model, "think") == ["Yes.", Usage(2, 7)]
    pour = ToolOffer("pour", "Pour.")
    assert await _all(model, "call", pour) == [ToolRequest("pour", {"drink": "ale"}), Usage(2, 7)]
    await model.unload()


async def test_progress_is_reported_once(weights: Path) -> None:
    model = LocalModel(weights)
    progress: list[float] = []
    await model.load(progress.append)
    await model.load(progress.append)
    assert progress == [0.1, 1.0]
    await model.unload()


async def test_every_waiter_of_the_same_load_gets_its_progress(weights: Path) -> None:
    model = LocalModel(weights)
    heard: list[list[float]] = [[], []]
    async with trio.open_nursery() as nursery:
        for each in heard:
            nursery.start_soon(model.load, each.append)
    assert heard[0] == heard[1] == [0.1, 1.0]
    await model.unload()


def test_it_knows_its_traits(weights: Path) -> None:
    traits = LocalModel(weights, slots=3, context_tokens=512).traits
    assert not traits.remote
    assert (traits.slots, traits.context_tokens) == (3, 512)
    assert traits.memory_bytes > weights.stat().st_size
    assert LocalModel(weights, memory_bytes=5).traits.memory_bytes == 5


async def test_what_is_not_loaded_cannot_speak(weights: Path) -> None:
    with pytest.raises(ModelError, match="not loaded"):
        await _all(LocalModel(weights), "Hello")


@pytest.mark.parametrize("said", ["talk for ever", "read for ever"])
async def test_a_round_that_is_cancelled_frees_its_slot(weights: Path, said: str) -> None:
    async with loaded(weights) as model:
        for _ in range(3):
            with trio.CancelScope() as scope:
                async with aclosing(model.generate(Prompt(said))) as output:
                    trio.lowlevel.current_trio_token().run_sync_soon(scope.cancel)
                    async for _ in output:
                        pass
            assert scope.cancelled_caught
            assert await _all(model, "Hello") == GREETING


async def test_a_round_that_is_left_early_frees_its_slot(weights: Path) -> None:
    async with loaded(weights) as model:
        async with aclosing(model.generate(Prompt("talk for ever"))) as output:
            assert await anext(output) == "word "
        assert await _all(model, "Hello") == GREETING


async def test_a_round_waits_until_a_slot_is_free(weights: Path) -> None:
    async with loaded(weights) as model:
        heard: list[Output] = []

        async def second() -> None:
            heard.extend(await _all(model, "Hello"))

        async with trio.open_nursery() as nursery, aclosing(model.generate(Prompt("talk for ever"))) as output:
            await anext(output)
            nursery.start_soon(second)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert heard == []
    assert heard == GREETING


async def test_as_many_rounds_as_slots_run_at_once(weights: Path) -> None:
    async with loaded(weights, slots=2) as model, aclosing(model.generate(Prompt("talk for ever"))) as first:
        await anext(first)
        async with aclosing(model.generate(Prompt("talk for ever"))) as second:
            assert await anext(second) == await anext(first) == "word "


async def test_a_slot_that_does_not_stop_takes_its_process_with_it(
    weights: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with loaded(weights) as model:
        async with trio.open_nursery() as nursery, aclosing(model.generate(Prompt("do not stop"))) as output:
            await anext(output)
            nursery.start_soon(_jump, mock_clock, local_engine.STOP_SECONDS + 1)
        assert model.warm_state is WarmState.WARM
        await model.load(_ignore)
        assert await _all(model, "Hello") == GREETING


async def test_a_process_that_does_not_listen_is_killed(weights: Path, mock_clock: trio.testing.MockClock) -> None:
    async with loaded(weights) as model:
        _send(model, signal.SIGSTOP)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_jump, mock_clock, local_engine.STOP_SECONDS + 1)
            with pytest.raises(StreamError, match="does not respond"):
                await _all(model, "word " * 5_000_000)
        assert model.warm_state is WarmState.WARM


@pytest.mark.parametrize(
    ("said", "error", "why"),
    [
        ("die", StreamError, "process ended"),
        ("break off", StreamError, "broke off"),
        ("refuse", PromptTooLarge, "longer than"),
        ("fail", ModelError, "refused"),
        ("throw", ModelError, "refused"),
    ],
)
async def test_failures_are_told_without_quoting_anybody(
    weights: Path, said: str, error: type[ModelError], why: str
) -> None:
    async with loaded(weights) as model:
        with pytest.raises(error, match=why) as caught:
            await _all(model, said)
        assert "secret" not in repr(caught.value.__cause__) + str(caught.value)
        await model.load(_ignore)
        assert await _all(model, "Hello") == GREETING


async def test_a_process_that_was_killed_is_seen_and_started_again(weights: Path) -> None:
    async with loaded(weights) as model:
        _send(model, signal.SIGKILL)
        assert await _becomes(lambda: model.warm_state is WarmState.WARM)
        with pytest.raises(StreamError):
            await _all(model, "Hello")
        await model.load(_ignore)
        assert await _all(model, "Hello") == GREETING


async def test_a_required_call_is_the_first_round_and_nothing_of_it_is_said(weights: Path) -> None:
    async with loaded(weights, tool_choice="required") as model:
        assert await _all_and_signs_of_life(model, "call", ToolOffer("pour", "Pour.")) == [
            "",
            "",
            ToolRequest("pour", {"drink": "ale"}),
            Usage(2, 7),
        ]
        assert await _all(model, "Hello") == GREETING


async def test_a_required_call_that_is_none_is_an_error(weights: Path) -> None:
    async with loaded(weights, tool_choice="required") as model:
        with pytest.raises(ModelError, match="is not the required tool call"):
            await _all(model, "Hello", ToolOffer("pour", "Pour."))


@pytest.mark.parametrize(("cue", "why"), [(b"refuse", "cannot load"), (b"die", "exit code 7")])
async def test_a_load_that_fails_says_why(weights: Path, cue: bytes, why: str) -> None:
    _cue(weights, cue)
    model = LocalModel(weights)
    with pytest.raises(ModelError, match=why):
        await model.load(_ignore)
    assert model.warm_state is WarmState.COLD


@pytest.mark.parametrize(("error", "why"), [("ModuleNotFoundError", r"extra local"), ("ImportError", "libgomp1")])
async def test_an_engine_that_the_process_cannot_have_is_explained(
    weights: Path, monkeypatch: pytest.MonkeyPatch, error: str, why: str
) -> None:
    (weights.parent / "xllamacpp.py").write_text(f"raise {error}")
    monkeypatch.setenv("PYTHONPATH", str(weights.parent))
    with pytest.raises(ModelLoadFailed, match=why) as raised:
        await LocalModel(weights).load(_ignore)
    assert isinstance(raised.value, ExtraMissing) is (error == "ModuleNotFoundError")


async def test_a_turn_says_which_extra_its_model_lacks(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (weights.parent / "xllamacpp.py").write_text("raise ModuleNotFoundError")
    monkeypatch.setenv("PYTHONPATH", str(weights.parent))
    async with open_stage(standard_cast(LocalModel(weights))) as stage:
        events = await take_turn(stage.start(), "A room?")
    assert only(events, TurnInterrupted).error == ErrorInfo(
        "model_extra_missing",
        "The local model's engine is not installed: install the extra local (from a checkout: pip install '.[local]')",
    )


async def test_ctrl_c_in_the_terminal_is_not_for_the_model(weights: Path) -> None:
    async with loaded(weights) as model:
        assert model.process_id is not None
        assert os.getsid(model.process_id) != os.getsid(0)
        _send(model, signal.SIGINT)
        assert await _all(model, "Hello") == GREETING


_LOADS_AND_STAYS = """
import sys, trio
from footlights_actors.models.local.model import LocalModel
async def main():
    model = LocalModel(sys.argv[1])
    await model.load(lambda progress: None)
    print(model.process_id, flush=True)
    await trio.sleep_forever()
trio.run(main)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells when a process that is not ours ends")
async def test_the_process_does_not_outlive_who_started_it(weights: Path) -> None:
    command = [sys.executable, "-c", _LOADS_AND_STAYS, str(weights)]
    host = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert host.stdout is not None
    async with host.stdout:
        process = os.pidfd_open(int(await host.stdout.receive_some()))
        try:
            host.kill()
            await host.wait()
            await trio.lowlevel.wait_readable(process)  # it has ended
        finally:
            os.close(process)


async def test_a_process_that_cannot_even_begin_is_an_error(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match="exit code 1"):
        await LocalModel(weights).load(_ignore)
    monkeypatch.setattr(sys, "executable", "")  # as in a program that Python is embedded in
    with pytest.raises(ModelError, match="cannot be started"):
        await LocalModel(weights).load(_ignore)


async def test_a_load_that_is_cancelled_leaves_no_process(weights: Path) -> None:
    _cue(weights, b"hang")
    model = LocalModel(weights)
    with trio.CancelScope() as scope:
        await model.load(lambda _: scope.cancel())
    assert scope.cancelled_caught
    assert model.warm_state is WarmState.COLD
    _cue(weights, b"load")
    await model.load(_ignore)
    assert await _all(model, "Hello") == GREETING
    await model.unload()


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[trio.Process]:
    """All that were started."""
    started: list[trio.Process] = []
    open_process = trio.lowlevel.open_process

    async def noted(command: list[str], **options: Any) -> trio.Process:
        process: trio.Process = await open_process(command, **options)
        started.append(process)
        return process

    monkeypatch.setattr(trio.lowlevel, "open_process", noted)
    return started


async def test_a_cancel_that_comes_as_the_load_ends_leaves_no_process(
    weights: Path, processes: list[trio.Process]
) -> None:
    model = LocalModel(weights)
    with trio.CancelScope() as scope:
        await model.load(lambda progress: scope.cancel() if progress == 1.0 else None)
    assert scope.cancelled_caught
    assert (model.warm_state, model.process_id) == (WarmState.COLD, None)
    assert [process.returncode is None for process in processes] == [False]


async def test_a_load_that_is_cancelled_at_any_step_leaves_no_process(
    weights: Path, processes: list[trio.Process]
) -> None:
    outcomes: list[WarmState] = []
    for step in count(1):
        model = LocalModel(weights, slots=2)
        cancel = _CancelAt(step)
        trio.lowlevel.add_instrument(cancel)
        with cancel.scope:
            await model.load(_ignore)
        trio.lowlevel.remove_instrument(cancel)
        outcomes.append(model.warm_state)
        lives = [process for process in processes if process.returncode is None]
        assert [process.pid for process in lives] == ([] if model.process_id is None else [model.process_id])
        await model.unload()
        if not cancel.done:
            break
    assert outcomes[0] is WarmState.COLD
    assert outcomes[-1] is WarmState.HOT
    assert outcomes.count(WarmState.COLD) > 5


class _CancelAt(trio.abc.Instrument):
    """Cancels the task that made it, before its step of that number. How many there are depends on the machine."""

    def __init__(self, step: int) -> None:
        self.scope = trio.CancelScope()
        self.done = False
        self._left = step
        self._task = trio.lowlevel.current_task()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task and not self.done:
            self._left -= 1
            if not self._left:
                self.done = True
                self.scope.cancel()


async def test_strangers_who_knock_are_turned_away(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strangers: list[socket.socket] = []
    open_door = trio.open_tcp_listeners

    async def watched(port: int, *, host: str) -> list[trio.SocketListener]:
        listeners = await open_door(port, host=host)
        address = listeners[0].socket.getsockname()
        strangers.extend(socket.create_connection(address) for _ in range(3))
        return listeners

    monkeypatch.setattr(trio, "open_tcp_listeners", watched)
    model = LocalModel(weights, slots=2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(model.load, _ignore)
        while len(strangers) < 3:
            await trio.lowlevel.checkpoint()
        guesses, resets, says_nothing = strangers
        guesses.sendall(b"x" * 64)
        resets.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        resets.close()
    assert await _all(model, "Hello") == GREETING
    assert [guesses.recv(1), says_nothing.recv(1)] == [b"", b""]
    guesses.close()
    says_nothing.close()
    await model.unload()


def test_what_cannot_work_is_refused_at_once(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegistrationError, match="cannot be read"):
        LocalModel(tmp_path / "nothing.gguf")
    with pytest.raises(RegistrationError, match="at least 1"):
        LocalModel(weights, slots=0)
    weights.write_bytes(b"text")
    with pytest.raises(RegistrationError, match="not a GGUF"):
        LocalModel(weights)
    monkeypatch.setattr("footlights_actors.models.local.model.find_spec", lambda name: None)
    with pytest.raises(RegistrationError, match=r"extra local"):
        LocalModel(weights)


async def _turn(cast: Cast, said: str) -> list[StreamEvent]:
    async with open_stage(cast) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn(said)
            events: list[StreamEvent] = []
            async for event in stream.until_commit(turn_id):
                events.append(event)
                if event.event_type is EventType.TOKEN_DELTA:
                    session.cancel(turn_id)
            return events


async def test_a_turn_that_is_cancelled_ends_and_the_model_is_free(weights: Path) -> None:
    async with loaded(weights) as model:
        events = await _turn(standard_cast(model), "talk for ever")
        (end,) = [event.payload for event in events if isinstance(event.payload, TurnInterrupted)]
        assert end.reason is InterruptReason.CANCELED
        assert await _all(model, "Hello") == GREETING


def _send(model: LocalModel, number: signal.Signals) -> None:
    assert model.process_id is not None
    os.kill(model.process_id, number)


async def _jump(clock: trio.testing.MockClock, seconds: float) -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)
    clock.jump(seconds)


async def _becomes(is_so: Callable[[], bool]) -> bool:
    """A process that was killed dies soon, but not at once; a test that waits for ever is ended by the run."""
    while not is_so():
        await trio.lowlevel.checkpoint()
    return True


async def test_labels_have_the_probability_of_their_first_token_and_others_the_least(weights: Path) -> None:
    async with loaded(weights) as model:
        found = await model.log_probs("Act:", ["talk", "rumour", "rooms", "lantern"])
        assert found == {"talk": -1.0, "rumour": -2.0, "rooms": -3.0, "lantern": -5.0}
        assert await _all(model, "Hello") == ["Good ", "evening.", Usage(2, 7)]


async def test_a_model_that_gives_no_probabilities_or_is_not_loaded_says_so(weights: Path) -> None:
    with pytest.raises(ModelError, match="not loaded"):
        await LocalModel(weights).log_probs("Act:", ["talk"])
    async with loaded(weights) as model:
        with pytest.raises(StreamError, match="no probabilities"):
            await model.log_probs("give nothing", ["talk"])


async def test_reading_for_probabilities_can_be_cancelled_and_the_slot_is_free_again(weights: Path) -> None:
    async with loaded(weights) as model:
        with trio.CancelScope() as scope:
            trio.lowlevel.current_trio_token().run_sync_soon(scope.cancel)
            await model.log_probs("read for ever", ["talk"])
        assert scope.cancelled_caught
        assert await _all(model, "Hello") == ["Good ", "evening.", Usage(2, 7)]


async def test_a_round_ends_after_its_sentences_and_stops_the_engine(weights: Path) -> None:
    model = LocalModel(weights, slots=1, sentences=1)
    await model.load(_ignore)
    try:
        assert await _all(model, "two sentences") == ["Good ", "evening.", Usage(3)]
        assert await _all(model, "Hello") == ["Good ", "evening.", Usage(2, 7)]
    finally:
        await model.unload()


def test_a_round_has_at_least_one_sentence(weights: Path) -> None:
    with pytest.raises(RegistrationError, match="sentences"):
        LocalModel(weights, sentences=0)
