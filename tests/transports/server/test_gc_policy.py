"""Garbage collection policy: small collections while turns are open, full ones when none is."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import ref

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights import open_stage
from footlights_actors import ScriptedModel, Stall, standard_cast
from footlights_transports import load_config
from footlights_transports.server import gc_policy
from footlights_transports.server.gc_policy import THRESHOLDS, GentleCollector, collect_gently
from footlights_transports.server.serve import serve_here

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

    from footlights import Prompt
    from footlights_actors import Line


class Circle:
    def __init__(self) -> None:
        self.itself = self


def stalls(_prompt: Prompt) -> Iterator[Line]:
    yield Stall()


@contextmanager
def _full_collections() -> Generator[list[int]]:
    """How many there were so far that went through everything."""
    found: list[int] = []

    def note(phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            found.append(info["collected"])

    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


def test_python_never_begins_a_full_collection_by_itself() -> None:
    with GentleCollector(), _full_collections() as full:
        kept = [Circle() for _ in range(200_000)]
    assert full == []
    assert len(kept) == 200_000


def test_objects_that_survive_two_collections_are_frozen() -> None:
    with GentleCollector() as collector:
        kept = Circle()
        gc.collect(0)
        gc.collect(1)
        gone = ref(kept)
        del kept
        gc.collect(1)
        assert gone() is not None
        collector.collect_all()
        assert gone() is None


def test_garbage_that_is_young_is_found() -> None:
    with GentleCollector():
        gone = ref(Circle())
        gc.collect(1)
        assert gone() is None


def test_a_collection_does_not_visit_frozen_objects() -> None:
    with GentleCollector():
        kept = [Circle() for _ in range(10_000)]
        gc.collect(1)
        assert sum(len(gc.get_objects(generation)) for generation in range(3)) < len(kept)


def test_too_many_objects_for_one_collection_are_frozen() -> None:
    with GentleCollector() as collector:
        gc.disable()
        kept = [Circle() for _ in range(10_000)]
        gone = ref(Circle())
        gc.enable()
        gc.collect(0)
        assert gone() is not None
        assert sum(len(gc.get_objects(generation)) for generation in range(3)) < len(kept)
        collector.collect_all()
        assert gone() is None


def test_everything_is_as_before_when_it_is_left() -> None:
    before = gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()
    with GentleCollector():
        assert gc.get_freeze_count() > 0
    assert (gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()) == before


def test_a_full_collection_is_due_when_memory_has_grown_and_no_turn_is_open_or_it_has_grown_a_lot() -> None:
    with GentleCollector() as collector:
        memory = collector.memory_then
        assert not collector.is_due(memory, quiet=True)
        assert not collector.is_due(round(memory * 1.2), quiet=True)
        assert collector.is_due(round(memory * 1.3), quiet=True)
        assert not collector.is_due(round(memory * 1.5) + 100_000_000, quiet=False)
        assert collector.is_due(round(memory * 1.5) + 150_000_000, quiet=False)


def test_memory_that_a_large_body_takes_is_noticed() -> None:
    """In a process of its own: one that has freed much, such as a local model, takes no more for the body."""
    program = (
        "from footlights_transports.server.gc_policy import memory_in_use\n"
        "before = memory_in_use()\n"
        "kept = b'x' * 64_000_000\n"
        "print(memory_in_use() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(done.stdout) > 40_000_000


async def test_a_server_waits_until_no_turn_was_open_for_some_seconds(
    monkeypatch: pytest.MonkeyPatch, quiet_clock: MockClock
) -> None:
    monkeypatch.setattr(gc_policy, "_GROWN", 0.5)
    async with open_stage(standard_cast(ScriptedModel(stalls))) as stage, trio.open_nursery() as nursery:
        session = stage.start()
        turn_id = session.begin_turn("Good evening.")
        with _full_collections() as full:
            nursery.start_soon(collect_gently, stage)
            await trio.sleep(10.5)
            assert full == []
            session.cancel(turn_id)
            await session.finalize(turn_id).wait()
            await trio.sleep(2)
            assert full == []
            await trio.sleep(1)
            assert len(full) == 1
            nursery.cancel_scope.cancel()
    await wait_all_tasks_blocked()
    assert gc.get_freeze_count() == 0


async def test_a_server_that_is_never_quiet_collects_when_memory_has_grown_a_lot(
    monkeypatch: pytest.MonkeyPatch, quiet_clock: MockClock
) -> None:
    monkeypatch.setattr(gc_policy, "_GROWN_A_LOT", 0.5)
    monkeypatch.setattr(gc_policy, "_A_LOT", 0)
    async with open_stage(standard_cast(ScriptedModel(stalls))) as stage, trio.open_nursery() as nursery:
        stage.start().begin_turn("Good evening.")
        with _full_collections() as full:
            nursery.start_soon(collect_gently, stage)
            await trio.sleep(1.5)
            assert len(full) == 1
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("gentle", [True, False])
def test_a_server_collects_like_that_unless_configured_otherwise(tmp_path: Path, gentle: bool) -> None:
    given = {"ws_port": 0, "http_port": 0, "ledger": str(tmp_path / "a.ledger"), "gentle_gc": gentle}
    config = load_config(options={("server", name): value for name, value in given.items()})
    before = gc.get_threshold()
    seen: set[tuple[int, int, int]] = set()

    def look(token: trio.lowlevel.TrioToken, looks_left: int) -> None:
        seen.add(gc.get_threshold())
        if looks_left:
            token.run_sync_soon(look, token, looks_left - 1)
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    serve_here(config, lambda _: look(trio.lowlevel.current_trio_token(), 100))
    assert seen == ({before, THRESHOLDS} if gentle else {before})
    assert gc.get_threshold() == before
