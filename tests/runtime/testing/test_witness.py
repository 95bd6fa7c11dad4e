"""The witness sees every stream, and speaks up where the laws are broken."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from footlights import EventType, Subscription, open_stage
from footlights.stream.lane import Lane
from footlights.testing import LawsBroken, witness
from footlights_actors import Say, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from footlights import Stage
    from footlights.stream.lane import Entry
    from footlights.testing import Witness


async def one_turn(stage: Stage, error: Exception | None = None) -> None:
    session = stage.start()
    async with session.subscribe() as stream:
        turn_id = session.begin_turn("A room?")
        async for _ in stream.until_commit(turn_id):
            pass
        if error is not None:
            raise error


def lose_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    put = Lane.put

    def planted(self: Lane, entry: Entry) -> bool:
        if entry.event.event_type is EventType.TURN_FINAL:
            put(self, entry)
            self._queue.pop()  # pyright: ignore[reportPrivateUsage]
            return False
        if entry.event.event_type is EventType.COMMIT_FINAL:
            entry = entry._replace(event=evolve(entry.event, seq=entry.event.seq - 1))
        return put(self, entry)

    monkeypatch.setattr(Lane, "put", planted)


async def test_a_subscriber_that_saw_a_broken_law_says_so_where_it_leaves(
    monkeypatch: pytest.MonkeyPatch, footlights_witness: Witness
) -> None:
    lose_the_terminal(monkeypatch)
    with pytest.raises(LawsBroken, match="one_terminal"):
        async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))) as stage:
            await one_turn(stage)
    assert [violation.law for violation in footlights_witness.violations] == ["one_terminal"]
    footlights_witness.tolerated = True


async def test_a_broken_law_that_was_caught_is_reported_at_the_end(
    monkeypatch: pytest.MonkeyPatch, footlights_witness: Witness
) -> None:
    footlights_witness.tolerated = True
    lose_the_terminal(monkeypatch)
    watching = witness()
    mine = watching.__enter__()
    async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))) as stage:
        with suppress(LawsBroken):
            await one_turn(stage)
    assert len(mine.violations) == 1
    with pytest.raises(LawsBroken, match="one_terminal"):
        watching.__exit__(None, None, None)


async def test_who_ends_its_own_stream_need_not_have_heard_everything() -> None:
    with witness() as mine:
        async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm."), Stall()]))) as stage:
            session = stage.start()
            async with session.subscribe() as stream:
                session.begin_turn("A room?")
                await stream.receive_batch()
                stream.end()
                assert await stream.receive_batch() == []
    assert (mine.judged, mine.violations) == (1, [])


async def test_an_error_on_its_way_is_not_hidden_by_a_broken_law(
    monkeypatch: pytest.MonkeyPatch, footlights_witness: Witness
) -> None:
    footlights_witness.tolerated = True
    lose_the_terminal(monkeypatch)
    async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))) as stage:
        with pytest.raises(ZeroDivisionError):
            await one_turn(stage, error=ZeroDivisionError())
    footlights_witness.close()
    assert "one_terminal" in {violation.law for violation in footlights_witness.violations}


async def test_a_witness_of_your_own_counts_what_it_judged() -> None:
    with witness() as mine:
        async with open_stage(standard_cast(ScriptedModel(lambda prompt: [Say("Hm.")]))) as stage:
            await one_turn(stage)
            await one_turn(stage)
    assert mine.judged == 2
    assert mine.violations == []


async def test_who_saw_nothing_is_not_judged() -> None:
    with witness() as mine:
        async with open_stage(standard_cast()) as stage, stage.start().subscribe():
            pass
    assert mine.judged == 0


def test_the_plugin_watches_tests_that_do_not_ask_for_it() -> None:
    assert Subscription._take.__name__ == "watched_take"
