"""Fair share: when a shared limit is reached, the owner that holds most gives way, in whatever order they came."""

from __future__ import annotations

from collections import Counter, OrderedDict
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import httpx2
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked
from trio_websocket import ConnectionRejected

from footlights import Busy, Limits, MemoryLedger, SessionParams, ToolContext, TurnParams, open_stage, tool
from footlights.fair_share import FairShare, eviction_candidate
from footlights.modes import ExecutionPolicy
from footlights_actors import Call, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.errors import RateLimited
from footlights_transports.views.base import run_keeper
from footlights_transports.views.chat_feed.feeds import ChatFeeds
from footlights_transports.views.dexi.runs import RunRequest, Runs
from tests.kit.peers import http_peer, ws_peer

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights import Prompt
    from footlights_actors.models.scripted import Line
    from footlights_transports.views.dexi.run import Run

FLOODER, GUEST = User("flooder"), User("guest")
TOKENS = {"flooder": "f" * 16, "guest": "g" * 16}
STALLING = standard_cast(ScriptedModel(lambda _: (Say("Well,"), Stall())))


def bearer(user: User) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[str(user.name)]}"}


# -- the rule


def share(limit: int, own_limit: int | None = None, *, is_divided: bool = True) -> FairShare:
    return FairShare("places", "max_places", limit, own_limit, is_divided)


@given(st.integers(2, 40), st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200))
def test_whatever_owners_do_the_last_places_are_for_those_who_hold_few(
    limit: int, program: list[tuple[int, bool]]
) -> None:
    rule, held = share(limit), Counter[int]()
    for owner, takes in program:
        free = limit - held.total()
        if not takes:
            held[owner] -= held[owner] > 0
            continue
        try:
            rule.check(held[owner], held.total())
        except Busy:
            assert held[owner] >= free
        else:
            assert held[owner] < free
            held[owner] += 1
    assert held.total() <= limit


@pytest.mark.parametrize("limit", range(2, 20))
def test_an_owner_that_floods_leaves_half_and_another_gets_a_quarter(limit: int) -> None:
    rule, held = share(limit), Counter[str]()
    for owner in ("flooder", "guest"):
        with suppress(Busy):
            while True:
                rule.check(held[owner], held.total())
                held[owner] += 1
    assert held["flooder"] == (limit + 1) // 2
    assert held["guest"] >= max(1, limit // 4)


def test_a_single_owner_gets_everything_but_no_more_than_it_may_hold() -> None:
    share(10, is_divided=False).check(9, 9)
    with pytest.raises(Busy, match=r"There are 10 places \(max_places\)"):
        share(10, is_divided=False).check(10, 10)
    with pytest.raises(Busy, match=r"You have 3 places \(max_places_per_user\)"):
        share(10, 3).check(3, 3)
    share(10, 3).check(3, 3, is_exempt=True)


def test_of_what_is_kept_the_first_thing_of_the_heaviest_owner_goes() -> None:
    weights = OrderedDict([("a1", 1), ("b1", 1), ("b2", 1), ("a2", 5)])
    assert eviction_candidate(weights, lambda name: name[0]) == "a1"
    assert eviction_candidate(dict.fromkeys(["a1", "b1", "b2"], 1), lambda name: name[0]) == "b1"


# -- each limit


async def test_an_owner_that_floods_sessions_leaves_one_for_the_guest(quiet_clock: MockClock) -> None:
    async with open_stage(STALLING, limits=Limits(max_sessions=4)) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        for _ in range(2):
            access.start(FLOODER, SessionParams())
        with pytest.raises(Busy, match="max_sessions"):
            access.start(FLOODER, SessionParams())
        guests = access.start(GUEST, SessionParams()).session_id
        await access.close(GUEST, guests)
        with pytest.raises(Busy):
            access.start(FLOODER, SessionParams())
        access.start(GUEST, SessionParams())


async def test_an_owner_that_floods_turns_leaves_one_for_the_guest(quiet_clock: MockClock) -> None:
    async with open_stage(STALLING, limits=Limits(max_open_turns=6)) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        flooders = access.start(FLOODER, SessionParams()).session_id
        guests = access.start(GUEST, SessionParams()).session_id
        begun = [access.begin_turn(FLOODER, flooders, "Well?", TurnParams()) for _ in range(3)]
        with pytest.raises(Busy, match="max_open_turns"):
            access.begin_turn(FLOODER, flooders, "Well?", TurnParams())
        access.begin_turn(GUEST, guests, "Well?", TurnParams())
        # A place comes back when its turn is settled, and not before.
        access.cancel(FLOODER, flooders, begun[-1])
        await stage.session(flooders).finalize(begun[-1]).wait()
        access.cancel(GUEST, guests, None)
        await wait_all_tasks_blocked()
        access.begin_turn(FLOODER, flooders, "Well?", TurnParams())
        with pytest.raises(Busy, match="max_open_turns"):
            access.begin_turn(FLOODER, flooders, "Well?", TurnParams())


async def test_an_owner_that_floods_tools_leaves_one_for_the_guest(quiet_clock: MockClock) -> None:
    running: list[str] = []

    @tool
    async def dig(context: ToolContext) -> None:
        """Dig for a long time."""
        running.append(context.session_id)
        await trio.sleep_forever()

    def script(prompt: Prompt) -> list[Line]:
        return [Say("Well.")] if prompt.exchanges else [Call("dig")] * (4 if prompt.user == "all" else 1)

    cast = standard_cast(ScriptedModel(script), tools=[dig])
    async with open_stage(cast, limits=Limits(max_running_tools=4)) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        flooders = access.start(FLOODER, SessionParams()).session_id
        guests = access.start(GUEST, SessionParams()).session_id
        access.begin_turn(FLOODER, flooders, "all", TurnParams())
        await wait_all_tasks_blocked()
        access.begin_turn(GUEST, guests, "one", TurnParams())
        await wait_all_tasks_blocked()
        assert running == [flooders, flooders, guests]


async def test_an_owner_that_closes_many_sessions_does_not_evict_the_end_of_the_guests(
    quiet_clock: MockClock,
) -> None:
    async with open_stage(STALLING, limits=Limits(replay_sessions=2)) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        for user in (GUEST, *[FLOODER] * 5):
            await access.close(user, access.start(user, SessionParams()).session_id)
        async with access.subscribe(GUEST, "guest:s1-000001", {}, ()) as stream:
            assert [event async for event in stream] == []


async def test_open_turns_of_one_user_have_a_limit_of_their_own_which_no_game_server_has(
    quiet_clock: MockClock,
) -> None:
    async with open_stage(STALLING) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=WireLimits(max_open_turns_per_user=1)))
        session_id = access.start(GUEST, SessionParams()).session_id
        access.begin_turn(GUEST, session_id, "Well?", TurnParams())
        with pytest.raises(Busy, match="max_open_turns_per_user"):
            access.begin_turn(GUEST, session_id, "Well?", TurnParams())
        access.admission.renew(
            AccessPolicy(TOKENS, roles={"guest": {"game_server": True}}, limits=access.policy.limits)
        )
        access.begin_turn(GUEST, session_id, "Well?", TurnParams())


async def test_without_tokens_one_user_has_every_place(quiet_clock: MockClock) -> None:
    async with open_stage(STALLING, limits=Limits(max_open_turns=4, max_sessions=1)) as stage:
        access = SessionAccess(stage)
        session_id = access.start(User(), SessionParams()).session_id
        for _ in range(4):
            access.begin_turn(User(), session_id, "Well?", TurnParams())


async def test_an_owner_that_floods_websockets_leaves_one_for_the_guest() -> None:
    policy = AccessPolicy(TOKENS, limits=WireLimits(max_connections=4))
    async with ws_peer.open_house(policy=policy) as house, AsyncExitStack() as flood:
        for _ in range(2):
            await flood.enter_async_context(ws_peer.connect(house, headers=bearer(FLOODER)))
        with pytest.RaisesGroup(ConnectionRejected, flatten_subgroups=True, allow_unwrapped=True):
            await flood.enter_async_context(ws_peer.connect(house, headers=bearer(FLOODER)))
        async with ws_peer.connect(house, headers=bearer(GUEST)) as guest:
            await guest.take_turn(await guest.start())


async def test_an_owner_that_floods_http_leaves_a_connection_for_the_guest() -> None:
    policy = AccessPolicy(TOKENS, limits=WireLimits(max_connections=4))
    async with http_peer.open_house(policy=policy) as house, AsyncExitStack() as flood:
        statuses: list[int] = []
        for _ in range(4):
            client = await flood.enter_async_context(
                httpx2.AsyncClient(base_url=house.address, headers=bearer(FLOODER), timeout=None)
            )
            statuses.append((await client.get("/v1/world")).status_code)
        assert statuses == [200, 200, 503, 503]
        assert (await house.client.get("/v1/world", headers=bearer(GUEST))).status_code == 200


async def test_connections_to_both_servers_are_counted_together(quiet_clock: MockClock) -> None:
    async with open_stage(STALLING) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=WireLimits(max_connections_per_user=2)))
        access.admission.connect(GUEST)
        access.admission.connect(GUEST)
        with pytest.raises(Busy, match="max_connections_per_user"):
            access.admission.connect(GUEST)
        access.admission.disconnect(GUEST)
        access.admission.connect(GUEST)


async def test_an_owner_that_floods_bytes_slows_down_itself_alone(quiet_clock: MockClock) -> None:
    limits = WireLimits(max_frame_bytes=100, user_byte_burst=1_000, user_bytes_per_second=10)
    async with open_stage(STALLING) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, limits=limits))
        access.admission.byte_budget(FLOODER).settle(0, 1_100, trio.current_time())
        with pytest.raises(RateLimited, match="10 bytes a second") as refused:
            access.admission.check_bytes(FLOODER)
        assert refused.value.retry_after == 10
        access.admission.check_bytes(GUEST)
        quiet_clock.jump(10)
        access.admission.check_bytes(FLOODER)


async def test_bodies_are_charged_whatever_their_address_and_whether_they_are_refused() -> None:
    limits = WireLimits(max_frame_bytes=1_000, user_byte_burst=1_000, user_bytes_per_second=1)
    async with http_peer.open_house(policy=AccessPolicy(TOKENS, limits=limits)) as house:
        flooder, guest = bearer(FLOODER), bearer(GUEST)
        body = b"x" * 900
        statuses = [
            (await house.client.post("/v1/nowhere", content=body, headers=flooder)).status_code for _ in range(4)
        ]
        assert statuses == [404, 404, 429, 429]
        assert (await house.client.get("/v1/world", headers=flooder)).status_code == 200
        assert (await house.client.post("/v1/sessions", json={}, headers=guest)).status_code == 201


async def test_a_game_server_that_is_none_any_more_has_the_limits_of_a_user(quiet_clock: MockClock) -> None:
    limits = WireLimits(max_connections_per_user=1)
    async with open_stage(STALLING) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS, roles={"guest": {"game_server": True}}, limits=limits))
        user = access.policy.admit(f"Bearer {TOKENS['guest']}")
        access.admission.connect(user)
        access.admission.connect(user)
        access.admission.renew(AccessPolicy(TOKENS, limits=limits))
        with pytest.raises(Busy, match="max_connections_per_user"):
            access.admission.connect(user)


async def test_an_owner_that_reads_many_chats_loses_its_own_feeds(quiet_clock: MockClock) -> None:
    async with open_stage(STALLING) as stage, trio.open_nursery() as nursery:
        feeds = ChatFeeds(MemoryLedger(), max_feeds=3)
        nursery.start_soon(feeds.keep)
        await wait_all_tasks_blocked()
        await feeds.read(stage.start(SessionParams(session_id="guest:inn")))
        for number in range(9):
            await feeds.read(stage.start(SessionParams(session_id=f"flooder:{number}")))
        kept = [f"flooder:{number}" for number in range(9) if feeds.feed(f"flooder:{number}")]
        assert kept == ["flooder:7", "flooder:8"]
        assert feeds.feed("guest:inn") is not None
        await feeds.read(stage.session("flooder:0"), own_limit=1)
        assert [number for number in range(9) if feeds.feed(f"flooder:{number}")] == [0]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("limit", ["MAX_RUNS", "MAX_BYTES"])
async def test_an_owner_that_runs_much_loses_its_own_finished_runs(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    wish = RunRequest(message="Good evening.", policy=ExecutionPolicy.DENY)
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Well.")]))) as stage:
        access = SessionAccess(stage, AccessPolicy(TOKENS))
        runs = Runs(access)
        async with trio.open_nursery() as nursery:
            await nursery.start(runs.keep)
            guests = await runs.begin(GUEST, wish)
            await guests.wait_over()
            await wait_all_tasks_blocked()
            monkeypatch.setattr(run_keeper, limit, 3 if limit == "MAX_RUNS" else 4 * guests.size)
            flooders: list[Run] = []
            for _ in range(9):
                flooders.append(await runs.begin(FLOODER, wish))
                await flooders[-1].wait_over()
                await wait_all_tasks_blocked()
            assert runs.find_kept(GUEST, guests.run_id) is guests
            assert runs.find_kept(FLOODER, flooders[0].run_id) is None
            nursery.cancel_scope.cancel()
