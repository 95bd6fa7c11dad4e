"""Session access: users reach their own sessions only, and may have a limited number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import (
    Busy,
    CommitOutcome,
    EventType,
    Fact,
    InvalidCommand,
    LedgerUnavailable,
    Limits,
    MemoryLedger,
    Persona,
    SessionClosed,
    SessionParams,
    SessionState,
    Speaker,
    TurnParams,
    UnknownSession,
    open_stage,
)
from footlights.notebooks.entries import notebook_owner
from footlights.testing.faults import FlakyLedger
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.access.session_access import CoveredAccess, SessionAccess
from footlights_transports.errors import RateLimited, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Collection

    from trio.testing import MockClock

    from footlights import Cast
    from footlights.authority.record import CommitRecord

ANN, BOB, NOBODY = User("ann"), User("bob"), User()
TOKENS = {"ann": "a" * 16, "bob": "b" * 16}


def cast(*, stalling: bool = False) -> Cast:
    return standard_cast(
        ScriptedModel(lambda _: (Say("Good evening."), Stall()) if stalling else (Say("Good evening."),))
    )


async def test_sessions_are_numbered_for_each_user_and_named_after_it() -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        assert access.start(ANN, SessionParams()).session_id == "ann:s1-000001"
        assert access.start(ANN, SessionParams()).session_id == "ann:s1-000002"
        assert access.start(BOB, SessionParams()).session_id == "bob:s1-000001"
        assert access.start(ANN, SessionParams(session_id="inn")).session_id == "ann:inn"
        with pytest.raises(InvalidCommand):
            access.start(ANN, SessionParams(session_id="ann:inn"))


async def test_a_number_whose_name_was_chosen_before_is_left_out(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        access.start(ANN, SessionParams(session_id="ann:s1-000001"))
        access.start(ANN, SessionParams(session_id="ann:s1-000002"))
        await access.close(ANN, "ann:s1-000002")
        assert access.start(ANN, SessionParams()).session_id == "ann:s1-000003"
        assert access.start(BOB, SessionParams()).session_id == "bob:s1-000001"


async def test_without_tokens_the_stage_numbers_sessions() -> None:
    async with open_stage(cast()) as stage:
        assert SessionAccess(stage).start(NOBODY, SessionParams()).session_id == "s1-000001"


async def test_a_turn_from_the_desk(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        session_id = access.start(ANN, SessionParams()).session_id
        async with access.subscribe(ANN, session_id, None, ()) as stream:
            turn_id = access.begin_turn(ANN, session_id, "A room?", TurnParams())
            access.heard(ANN, session_id, turn_id, 0)
            assert (await access.finalize(ANN, session_id, turn_id)).commit_outcome is CommitOutcome.OK
            kinds = [event.event_type async for event in stream.until_commit(turn_id)]
        assert kinds[-1] is EventType.COMMIT_FINAL
        await access.close(ANN, session_id)
        with pytest.raises(UnknownSession):
            access.session(ANN, session_id)


async def test_all_connections_of_a_user_have_one_pace(quiet_clock: MockClock) -> None:
    limits = WireLimits(user_commands_per_second=2.0, user_command_burst=3)
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=limits))
        for _ in range(3):
            access.admission.take_command(ANN)
        with pytest.raises(RateLimited, match="2 commands a second"):
            access.admission.take_command(ANN)
        access.admission.take_command(BOB)
        await trio.sleep(0.5)
        access.admission.take_command(ANN)


async def test_cancel_from_the_desk(quiet_clock: MockClock) -> None:
    async with open_stage(cast(stalling=True)) as stage:
        access = SessionAccess(stage)
        session_id = access.start(NOBODY, SessionParams()).session_id
        turn_id = access.begin_turn(NOBODY, session_id, "A room?", TurnParams())
        assert access.cancel(NOBODY, session_id, None) == (turn_id,)


async def test_a_foreign_session_looks_like_none() -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        session_id = access.start(ANN, SessionParams(session_id="inn")).session_id
        said: set[str] = set()
        for wanted in (session_id, "ann:none", "bob:none", "s1-000001"):
            for ask in (
                lambda wanted=wanted: access.session(BOB, wanted),
                lambda wanted=wanted: access.subscribe(BOB, wanted, None, ()),
                lambda wanted=wanted: access.begin_turn(BOB, wanted, "?", TurnParams()),
                lambda wanted=wanted: access.cancel(BOB, wanted, None),
                lambda wanted=wanted: access.heard(BOB, wanted, "t1-000001", 0),
            ):
                with pytest.raises(UnknownSession) as refused:
                    ask()
                said.add(str(refused.value))
            with pytest.raises(UnknownSession) as refused:
                await access.close(BOB, wanted)
            said.add(str(refused.value))
        assert len(said) == 1
        with pytest.raises(UnknownSession):
            access.subscribe(BOB, session_id, {}, ())
        assert access.session(ANN, session_id).session_id == session_id


async def test_who_comes_back_with_a_cursor_may_come_back_to_a_session_of_before_a_restart(
    quiet_clock: MockClock,
) -> None:
    ledger = MemoryLedger()
    async with open_stage(cast(), ledger=ledger) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        session_id = access.start(ANN, SessionParams(session_id="inn")).session_id
        turn_id = access.begin_turn(ANN, session_id, "A room?", TurnParams())
        await access.finalize(ANN, session_id, turn_id)
    async with open_stage(cast(), ledger=ledger) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=WireLimits(max_sessions_per_user=1)))
        with pytest.raises(UnknownSession):
            access.subscribe(ANN, session_id, None, ())
        async with access.subscribe(ANN, session_id, {turn_id: 1}, ()) as stream:
            told = [event.event_type for event in await stream.receive_batch()]
            assert told == [EventType.TURN_FINAL, EventType.COMMIT_FINAL]
        async with access.subscribe(ANN, session_id, {}, ()):
            pass  # it is open now
        with pytest.raises(Busy, match="max_sessions_per_user"):
            access.start(ANN, SessionParams())


async def test_a_user_has_only_so_many_open_sessions(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=WireLimits(max_sessions_per_user=2)))
        first = access.start(ANN, SessionParams())
        second = access.start(ANN, SessionParams())
        with pytest.raises(Busy, match="max_sessions_per_user"):
            access.start(ANN, SessionParams())
        access.start(BOB, SessionParams())
        await access.close(ANN, first.session_id)
        access.start(ANN, SessionParams())
        await second.close()  # not at the access
        access.start(ANN, SessionParams())
        with pytest.raises(Busy, match="max_sessions_per_user"):
            access.start(ANN, SessionParams())


async def test_closed_doors_let_nothing_new_begin_and_what_is_open_goes_on(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage)
        session_id = access.start(NOBODY, SessionParams()).session_id
        turn_id = access.begin_turn(NOBODY, session_id, "A room?", TurnParams())
        access.admission.close_doors()
        with pytest.raises(SessionClosed):
            access.start(NOBODY, SessionParams())
        with pytest.raises(SessionClosed):
            access.begin_turn(NOBODY, session_id, "A room?", TurnParams())
        assert (await access.finalize(NOBODY, session_id, turn_id)).commit_outcome is CommitOutcome.OK


async def test_a_server_that_closes_does_not_say_that_its_sessions_never_were(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        session_id = access.start(ANN, SessionParams()).session_id
        turn_id = access.begin_turn(ANN, session_id, "A room?", TurnParams())
        access.admission.close_doors()
    # The stage has gone before its clients, as it does in `serve`: they may come back when there is another.
    with pytest.raises(SessionClosed):
        access.begin_turn(ANN, session_id, "A room?", TurnParams())
    with pytest.raises(SessionClosed):
        access.cancel(ANN, session_id, turn_id)
    with pytest.raises(SessionClosed):
        access.heard(ANN, session_id, turn_id, 0)
    with pytest.raises(SessionClosed):
        await access.finalize(ANN, session_id, turn_id)
    with pytest.raises(SessionClosed):
        access.subscribe(ANN, session_id, None, ())
    with pytest.raises(UnknownSession):
        access.cancel(BOB, session_id, turn_id)


class Watch:
    def __init__(self) -> None:
        self.accepted: list[float] = []
        self.canceled: list[tuple[str, tuple[str, ...], float]] = []

    def turn_accepted(self, seconds: float) -> None:
        self.accepted.append(seconds)

    def turns_canceled(self, session_id: str, turn_ids: Collection[str], at: float) -> None:
        self.canceled.append((session_id, tuple(turn_ids), at))


async def test_a_listener_gets_turns_and_cancels(quiet_clock: MockClock) -> None:
    watch = Watch()
    async with open_stage(cast(stalling=True)) as stage:
        access = SessionAccess(stage, AccessPolicy(), watch)
        session_id = access.start(NOBODY, SessionParams()).session_id
        turn_id = access.begin_turn(NOBODY, session_id, "A room?", TurnParams())
        assert access.cancel(NOBODY, session_id, turn_id) == (turn_id,)
        assert access.cancel(NOBODY, session_id, turn_id) == ()
        assert watch.accepted == [0.0]
        assert watch.canceled[0] == (session_id, (turn_id,), trio.current_time())


async def test_a_repeated_request_is_one_turn_to_quotas_listeners_and_the_watch(quiet_clock: MockClock) -> None:
    watch, told = Watch(), list[str]()
    async with open_stage(cast(stalling=True)) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=WireLimits(max_open_turns_per_user=2)), watch)
        access.turn_listeners.append(lambda _session_id, turn_id, _said: told.append(turn_id))
        session_id = access.start(ANN, SessionParams()).session_id
        for _ in range(3):
            assert await access.begin_turn_once(ANN, session_id, "A room?", TurnParams(), "r1") == "t1-000001"
        assert await access.begin_turn_once(ANN, session_id, "A bath?", TurnParams(), "r2") == "t1-000002"
        with pytest.raises(Busy, match="max_open_turns_per_user"):
            await access.begin_turn_once(ANN, session_id, "A beer?", TurnParams(), "r3")
        assert await access.begin_turn_once(ANN, session_id, "A room?", TurnParams(), "r1") == "t1-000001"
        access.cancel(ANN, session_id, None)
        await access.finalize(ANN, session_id, "t1-000002")
        assert await access.begin_turn_once(ANN, session_id, "A beer?", TurnParams(), "r3") == "t1-000003"
        access.admission.close_doors()
        assert await access.begin_turn_once(ANN, session_id, "A beer?", TurnParams(), "r3") == "t1-000003"
        with pytest.raises(SessionClosed):
            await access.begin_turn_once(ANN, session_id, "One more?", TurnParams(), "r4")
    assert told == ["t1-000001", "t1-000002", "t1-000003"]
    assert len(watch.accepted) == 3


async def test_a_request_id_of_another_users_session_shows_nothing() -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        session_id = access.start(ANN, SessionParams()).session_id
        await access.begin_turn_once(ANN, session_id, "A room?", TurnParams(), "r1")
        with pytest.raises(UnknownSession):
            await access.begin_turn_once(BOB, session_id, "A room?", TurnParams(), "r1")


async def test_a_session_that_was_closed_is_not_opened_by_coming_back_to_it(quiet_clock: MockClock) -> None:
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage)
        access.start(NOBODY, SessionParams(session_id="inn"))
        await access.close(NOBODY, "inn")
        with pytest.raises(UnknownSession):
            access.subscribe(NOBODY, "inn", None, ())
        async with access.subscribe(NOBODY, "inn", {}, ()) as stream:
            assert stream.is_exhausted
        with pytest.raises(UnknownSession):
            access.begin_turn(NOBODY, "inn", "A room?", TurnParams())
        access.start(NOBODY, SessionParams(session_id="inn"))
        async with access.subscribe(NOBODY, "inn", {}, ()) as stream:
            assert not stream.is_exhausted


async def test_a_session_stays_closed_although_no_task_waited_for_its_end(quiet_clock: MockClock) -> None:
    async with open_stage(cast(stalling=True)) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=WireLimits(max_sessions_per_user=1)))
        session_id = access.start(ANN, SessionParams()).session_id
        access.begin_turn(ANN, session_id, "A room?", TurnParams())
        with trio.CancelScope() as impatient:
            impatient.cancel()
            await access.close(ANN, session_id)
        assert impatient.cancelled_caught
        await stage.session(session_id).close()
        async with access.subscribe(ANN, session_id, {}, ()) as stream:
            events = [event async for event in stream]
        assert events[-1].event_type is EventType.COMMIT_FINAL
        access.start(ANN, SessionParams())


async def test_only_so_many_closed_sessions_are_remembered(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footlights_transports.access.session_access.MAX_CLOSED", 1)
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage)
        for name in ("old", "new"):
            access.start(NOBODY, SessionParams(session_id=name))
            await access.close(NOBODY, name)
        access.subscribe(NOBODY, "old", {}, ())
        assert stage.session("old").state is SessionState.OPEN, "opened again, as the name of the host's that it is"
        access.subscribe(NOBODY, "new", {}, ())
        with pytest.raises(UnknownSession):
            stage.session("new")


async def test_a_listener_that_fails_affects_neither_the_turn_nor_other_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(session_id: str, turn_id: str, said: str) -> None:
        raise OverflowError(said)

    heard: list[tuple[str, str, str]] = []
    async with open_stage(cast()) as stage:
        access = SessionAccess(stage)
        access.turn_listeners += [broken, lambda session, turn, said: heard.append((session, turn, said))]
        session_id = access.start(NOBODY, SessionParams()).session_id
        turn_id = access.begin_turn(NOBODY, session_id, "a secret", TurnParams())
        assert (await access.finalize(NOBODY, session_id, turn_id)).commit_outcome is CommitOutcome.OK
    assert heard == [(session_id, turn_id, "a secret")]
    (line,) = [record.getMessage() for record in caplog.records if record.name == "footlights.incidents"]
    assert line.startswith("turn_listener failed: OverflowError")
    assert "secret" not in line


async def test_a_commit_that_is_unknown_at_shutdown_asks_the_client_to_come_back(
    quiet_clock: MockClock,
) -> None:
    slow = FlakyLedger(MemoryLedger(), delay=60)
    async with (
        trio.open_nursery() as nursery,
        open_stage(cast(), ledger=slow, limits=Limits(shutdown_deadline=4)) as stage,
    ):
        access = SessionAccess(stage)
        session_id = access.start(NOBODY, SessionParams()).session_id
        turn_id = access.begin_turn(NOBODY, session_id, "A room?", TurnParams())

        async def wait() -> None:
            with pytest.raises(SessionClosed):
                await access.finalize(NOBODY, session_id, turn_id)

        nursery.start_soon(wait)
        await trio.sleep(1)


class Unreadable(MemoryLedger):
    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.lowlevel.checkpoint()
        raise LedgerUnavailable("It is somewhere else today.")


async def test_who_asks_for_a_commit_while_the_ledger_cannot_be_read_may_ask_again(quiet_clock: MockClock) -> None:
    async with open_stage(cast(), ledger=Unreadable(), limits=Limits(replay_turns=1)) as stage:
        access = SessionAccess(stage)
        session_id = access.start(NOBODY, SessionParams()).session_id
        forgotten, last = (access.begin_turn(NOBODY, session_id, "A room?", TurnParams()) for _ in range(2))
        await access.finalize(NOBODY, session_id, last)
        with pytest.raises(Busy):
            await access.finalize(NOBODY, session_id, forgotten)


async def test_a_session_that_a_subscriber_opens_again_is_told_by_a_game_server_alone() -> None:
    seen: list[dict[str, Any]] = []

    def see(world: Any, speaker: Speaker) -> list[Fact]:
        seen.append(speaker.about)
        return []

    about: dict[str, Any] = {"name": "Bob"}
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hm.")]), personas=Persona(facts=see))) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, roles={"bob": {"game_server": True}}))
        with pytest.raises(Unauthorized, match="Only a game server"):
            access.subscribe(ANN, "ann:inn", {}, (), about=about)
        assert stage.open_sessions == 0
        access.subscribe(BOB, "bob:inn", {}, (), about=about)
        access.subscribe(ANN, "ann:inn", {}, ())
        for user, session_id in ((BOB, "bob:inn"), (ANN, "ann:inn")):
            await access.finalize(user, session_id, access.begin_turn(user, session_id, "Hm?", TurnParams()))
    assert seen == [{"id": None, **about}, {}]


async def test_players_whom_a_game_server_does_not_tell_apart_have_no_notebook() -> None:
    async with open_stage(standard_cast()) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, roles={"bob": {"game_server": True}}))
        told: list[dict[str, Any]] = [{}, {"name": "Ann"}, {"id": "ann", "name": "Ann"}]
        players = [access.start(BOB, SessionParams(session_id=f"bob:{n}", about=each)) for n, each in enumerate(told)]
        owners = [notebook_owner(each.speaker) for each in players]
        assert owners == [None, None, "bob:ann"]


async def test_a_turn_of_a_view_that_hides_words_counts_as_any_other() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hm.")]))) as stage:
        access = SessionAccess(stage)
        covered = CoveredAccess(access)
        session_id = covered.start(NOBODY, SessionParams()).session_id
        turn_id = covered.begin_turn(NOBODY, session_id, "Hm?", TurnParams())
        assert access.admission.turns_of[NOBODY] == 1
        await covered.finalize(NOBODY, session_id, turn_id)
        assert access.admission.turns_of[NOBODY] == 0
