"""Chat gateway over real sockets: events, errors, access, and observers that come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected

from footlights import BudgetConfig, EventType, ModelError, SessionParams, SideEffects, TurnParams
from footlights.models.model import ModelTraits
from footlights.tools.decorator import tool
from footlights_actors import Call, Fail, Say, ScriptedModel, Stall
from footlights_actors.sealed.keys import new_key
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.store import ContentStore
from tests.kit.peers.kgent_peer import (
    ANSWERED,
    ASKED,
    TOKENS,
    connect,
    observe,
    only,
    open_chat_house,
    perturb,
    text,
    wait_said,
)
from tests.kit.peers.ws_peer import HeldModel, open_house

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Prompt
    from footlights_actors import Line


def saying(*lines: Any) -> ScriptedModel:
    return ScriptedModel(lambda _: lines)


@pytest.mark.shows("gateway-23", "gateway-54", "gateway-56", "gateway-57", "gateway-58", "gateway-60")
async def test_the_payloads_of_a_dialogue() -> None:
    async with open_chat_house() as house, observe(house) as observer, perturb(house) as sender:
        await sender.send(mode="advise", correlation_id="client-uuid-123")
        frames = await observer.hear("client-uuid-123")
        *chunks, message, done = frames
        assert (message["event_type"], done["event_type"]) == ("message", "done")
        assert [each["payload"]["final"] for each in chunks] == [False] * (len(chunks) - 1) + [True]
        assert {each["payload"]["correlation_id"] for each in chunks} == {"client-uuid-123"}
        assert "".join(each["payload"]["content"] for each in chunks) == ANSWERED
        assert only(frames, "message") == [
            {
                "content": ANSWERED,
                "turn_id": "t1-000001",
                "mode": "advise",
                "tokens_used": 10,
                "entropy_cost": 0.01,
                "correlation_id": "client-uuid-123",
            }
        ]
        assert only(frames, "done") == [{"total_chunks": len(chunks), "correlation_id": "client-uuid-123"}]
        assert all(isinstance(each["timestamp"], float) for each in frames)
        assert sender.frames == []


@tool(cancel_safe=True, side_effects=SideEffects.NONE)
async def count_rooms() -> int:
    """Count the rooms."""
    return 3


@pytest.mark.shows("gateway-97", "gateway-105")
async def test_tools_are_offered_by_a_setting_and_only_what_acted_is_a_cause() -> None:
    def script(prompt: Prompt) -> list[Line]:
        if not prompt.tools:
            return [Say("I have no tools.")]
        return [Say("Three.")] if prompt.exchanges or prompt.user == "Why?" else [Call("count_rooms")]

    for tools, answers in ((False, ["I have no tools."] * 3), (True, ["Three."] * 3)):
        async with (
            open_chat_house(ScriptedModel(script), ChatFluxConfig(tools=tools), tools=[count_rooms]) as house,
            observe(house) as observer,
            perturb(house, "?session=mine") as sender,
        ):
            heard: list[str] = []
            for number, said in enumerate(("How many rooms are free?", "Why?", "Why?")):
                await sender.send(said, correlation_id=f"c-{number}")
                heard += [each["content"] for each in only(await observer.hear(f"c-{number}"), "message")]
            assert heard == answers
            trace = house.gateway._sessions["mine"].conversations["default"].trace
            first, *others = [each.id for each in trace.events]
            assert [trace.cone(each) for each in others] == [{first} if tools else set()] * 2


@pytest.mark.shows("gateway-89")
async def test_the_mirror_can_be_observed_and_tells_nothing_that_was_said() -> None:
    async with open_chat_house() as house, perturb(house) as sender, observe(house) as observer:
        await sender.send(correlation_id="a")
        turn_id = only(await observer.hear("a"), "message")[0]["turn_id"]
        async with observe(house, "?mirror=1") as watcher:
            kept = await watcher.receive()
            assert (kept["id"], kept["turn_type"], kept["entropy_cost"]) == (turn_id, "SPEECH", 0.01)
            await sender.send("hello", correlation_id="b")
            template = await watcher.receive()
            assert (template["source"], template["state_hash_pre"]) == ("kgent-template", kept["state_hash_post"])
            assert "content" not in kept.keys() | template.keys()
            assert not {ANSWERED, ASKED, "DIALOGUE_TURN"} & {*map(str, (*kept.values(), *template.values()))}


@pytest.mark.shows("gateway-38")
async def test_mode_and_correlation_id_have_defaults() -> None:
    async with open_chat_house() as house, observe(house) as observer, perturb(house) as sender:
        await sender.send()
        frame = await observer.receive()
        frames = await observer.hear(frame["payload"]["correlation_id"])
        assert only(frames, "message")[0]["mode"] == "reflect"


@pytest.mark.shows("gateway-56")
async def test_all_observers_get_the_same_events() -> None:
    async with open_chat_house() as house, observe(house) as one, observe(house) as other, perturb(house) as sender:
        for name in ("a", "b"):
            await sender.send(correlation_id=name)
            assert await one.hear(name) == await other.hear(name)


@pytest.mark.shows("gateway-3", "gateway-53")
async def test_the_version_and_the_handles_are_published() -> None:
    async with open_chat_house() as house, connect(house, "/observe/default") as client:
        told = dict(client.socket.handshake_headers)
        assert told[b"kgent-protocol-version"] == b"1.0.0"
        assert told[b"kgent-handles"] == (
            b"perturb=self.soul.perturb; observe=time.soul.witness; stream=time.chat.stream"
        )
        assert client.socket.subprotocol is None


async def test_a_browser_may_send_its_token_as_a_subprotocol() -> None:
    offered = ("kgent.v1", f"bearer.{TOKENS['ann']}")
    async with open_chat_house(policy=AccessPolicy(TOKENS)) as house, perturb(house, subprotocols=offered) as sender:
        assert sender.socket.subprotocol == "kgent.v1"


async def test_a_native_subscriber_sees_the_same_turn() -> None:
    async with open_chat_house() as house, observe(house) as observer, perturb(house, "?session=shared") as sender:
        async with house.stage.session("shared").subscribe() as native:
            await sender.send(correlation_id="a")
            (message,) = only(await observer.hear("a"), "message")
            events = [event async for event in native.until_commit(message["turn_id"])]
        assert events[-1].event_type is EventType.COMMIT_FINAL
        assert "".join(getattr(each.payload, "delta", "") for each in events) == message["content"]


# -- the five errors


@pytest.mark.shows("gateway-64")
async def test_invalid_message() -> None:
    async with open_chat_house() as house, perturb(house) as sender:
        await sender.send_raw("no object")
        assert (await sender.refusal())["code"] == "INVALID_MESSAGE"
        await sender.send("", correlation_id="mine")
        error = await sender.refusal("mine")
        assert error["code"] == "INVALID_MESSAGE"
        assert error["message"] == "ChatMessage content cannot be empty. Fix the client's payload."
        await sender.send(correlation_id="good")
        assert house.stage.statistics().sessions == 1


async def test_a_correlation_id_that_was_used_is_invalid() -> None:
    async with open_chat_house() as house, observe(house) as observer, perturb(house) as sender:
        await sender.send(correlation_id="a")
        await observer.hear("a")
        await sender.send(correlation_id="a")
        assert (await sender.refusal("a"))["code"] == "INVALID_MESSAGE"


@pytest.mark.shows("gateway-59", "gateway-61")
async def test_rate_limited_by_the_tokens_of_a_session() -> None:
    budget = BudgetConfig(whisper_max=5, dialogue_max=5, deep_max=5)
    config = ChatFluxConfig(session_tokens=5, session_tokens_seconds=600)
    model = ScriptedModel(lambda _: [Say("one two three four five")])
    async with (
        open_chat_house(model, config, budget=budget) as house,
        observe(house) as observer,
        perturb(house) as sender,
    ):
        await sender.send(correlation_id="a")
        await observer.hear("a")
        await sender.send(correlation_id="b")
        (error,) = only(await observer.hear("b"), "error")
        assert error == {
            "code": "RATE_LIMITED",
            "message": "Token budget exhausted. Wait retry_after_seconds, then send it with a new correlation_id.",
            "retry_after_seconds": error["retry_after_seconds"],
            "correlation_id": "b",
        }
        assert 590 <= error["retry_after_seconds"] <= 600
        assert [await sender.receive() for _ in range(2)] == observer.told("b"), "who asked is told too"


@pytest.mark.shows("gateway-83")
async def test_rate_limited_by_the_messages_of_a_client() -> None:
    config = ChatFluxConfig(messages_per_minute=1, message_burst=2)
    async with open_chat_house(config=config) as house, observe(house) as observer, perturb(house) as sender:
        for name in "abc":
            await sender.send(correlation_id=name)
        error = await sender.refusal("c")
        assert error["code"] == "RATE_LIMITED"
        assert 55 <= error["retry_after_seconds"] <= 60
        await observer.hear("b")
        assert observer.told("c") == [], "it began no dialogue"


@pytest.mark.parametrize(
    "limits",
    [
        WireLimits(user_commands_per_second=0.01, user_command_burst=1),
        WireLimits(commands_per_second=0.01, command_burst=1),
    ],
)
async def test_rate_limited_by_the_wire_limits(limits: WireLimits) -> None:
    async with open_chat_house(policy=AccessPolicy(limits=limits)) as house, perturb(house) as sender:
        await sender.send(correlation_id="a")
        await sender.send(correlation_id="b")
        error = await sender.refusal("b")
        assert error["code"] == "RATE_LIMITED"
        assert 40 <= error["retry_after_seconds"] <= 100


async def test_without_tokens_each_connection_has_its_own_limit() -> None:
    config = ChatFluxConfig(messages_per_minute=1, message_burst=2)
    async with (
        open_chat_house(config=config) as house,
        observe(house) as observer,
        perturb(house) as noisy,
        perturb(house, "?session=other") as quiet,
    ):
        for name in "abc":
            await noisy.send(correlation_id=name)
        assert (await noisy.refusal("c"))["code"] == "RATE_LIMITED"
        await quiet.send(correlation_id="d")
        assert only(await observer.hear("d"), "message")


async def test_with_a_token_all_connections_share_one_limit() -> None:
    config, ann = ChatFluxConfig(messages_per_minute=1, message_burst=2), {"token": TOKENS["ann"]}
    async with (
        open_chat_house(config=config, policy=AccessPolicy(TOKENS)) as house,
        perturb(house, **ann) as one,
        perturb(house, "?session=other", **ann) as other,
    ):
        for name in "abc":
            await one.send(correlation_id=name)
        assert (await one.refusal("c"))["code"] == "RATE_LIMITED"
        await other.send(correlation_id="d")
        assert (await other.refusal("d"))["code"] == "RATE_LIMITED"


async def test_invalid_frames_count_for_the_rate_limit() -> None:
    policy = AccessPolicy(limits=WireLimits(user_commands_per_second=1e-6, user_command_burst=2))
    async with open_chat_house(policy=policy) as house, perturb(house) as sender:
        for code in ("INVALID_MESSAGE", "INVALID_MESSAGE", "RATE_LIMITED", "RATE_LIMITED"):
            await sender.socket.send_message("{")
            assert (await sender.receive())["payload"]["code"] == code
            assert (await sender.receive())["event_type"] == "done"
        await sender.socket.send_message(b"{}")
        assert (await sender.receive())["payload"]["code"] == "RATE_LIMITED"


@pytest.mark.shows("gateway-77")
async def test_only_messages_of_clients_with_consent_are_stored(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, [new_key()])
    async with open_chat_house(keeper=store) as house, observe(house) as observer:
        async with (
            perturb(house, "?session=diary&keep_content=1") as agrees,
            perturb(house, "?session=diary") as does_not,
        ):
            await does_not.send("I never agreed to that.", correlation_id="a")
            await observer.hear("a")
            await agrees.send("I did.", correlation_id="b")
            await observer.hear("b")
        house.stop()
        await house.stopped.wait()
    assert [each.said for each in await store.read("diary")] == ["I did."]


@pytest.mark.shows("gateway-62")
async def test_stream_timeout() -> None:
    config = ChatFluxConfig(stream_timeout=0.01)
    model = saying(Say("Well,"), Stall())
    async with open_chat_house(model, config) as house, observe(house) as observer, perturb(house) as sender:
        await sender.send(correlation_id="a")
        frames = await observer.hear("a")
        assert only(frames, "error")[0]["code"] == "STREAM_TIMEOUT"
        assert text(frames) == "Well,"


@pytest.mark.shows("gateway-63")
async def test_llm_unavailable() -> None:
    model = saying(Say("Well,"), Fail(ModelError("down")))
    async with open_chat_house(model) as house, observe(house) as observer, perturb(house) as sender:
        await sender.send(correlation_id="a")
        assert only(await observer.hear("a"), "error")[0]["code"] == "LLM_UNAVAILABLE"


async def test_session_expired_during_an_answer() -> None:
    model = saying(Say("Well,"), Stall())
    async with open_chat_house(model) as house, observe(house) as observer, perturb(house, "?session=mine") as sender:
        await sender.send(correlation_id="a")
        await wait_said(house)
        await house.stage.session("mine").close()
        assert only(await observer.hear("a"), "error")[0]["code"] == "SESSION_EXPIRED"


@pytest.mark.shows("gateway-65")
async def test_session_expired_before_a_message_and_a_new_one_after_a_reconnect() -> None:
    async with open_chat_house() as house, perturb(house) as sender:
        (session_id,) = [each.session_id for _, each in house.access.open_sessions()]
        await house.stage.session(session_id).close()
        await sender.send(correlation_id="a")
        error = await sender.refusal("a")
        assert error["code"] == "SESSION_EXPIRED"
        assert error["message"].endswith("Reconnect.")
        async with observe(house) as observer, perturb(house) as again:
            await again.send(correlation_id="a")
            assert only(await observer.hear("a"), "message")


# -- access


@pytest.mark.shows("gateway-54")
async def test_an_unknown_agent_is_refused() -> None:
    async with open_chat_house() as house:
        for path in (
            "/perturb/nobody",
            "/observe/nobody",
            "/perturb/",
            "/observe",
            "/perturb/default/more",
            "/shout/x",
        ):
            assert await rejection(house, path) == 404


async def test_an_unknown_agent_is_refused_with_those_that_exist() -> None:
    async with open_chat_house() as house:
        with pytest.raises(ExceptionGroup) as refused:
            async with connect(house, "/perturb/nobody"):
                pytest.fail("it came in")
        (error,) = refused.value.exceptions
        assert isinstance(error, ConnectionRejected)
        told = orjson.loads(error.body or b"{}")["error"]["message"]
        assert told == f"There is no agent of that name; there are: {', '.join(house.stage.personas)}."


async def rejection(house: Any, path: str, **options: Any) -> int:
    with pytest.raises(ExceptionGroup) as refused:
        async with connect(house, path, **options):
            pytest.fail("it came in")
    (error,) = refused.value.exceptions
    assert isinstance(error, ConnectionRejected)
    assert "error" in orjson.loads(error.body or b"{}")
    return error.status_code


async def test_a_token_is_required_if_the_server_has_tokens() -> None:
    async with open_chat_house(policy=AccessPolicy(TOKENS)) as house:
        for path in ("/perturb/default", "/observe/default", "/perturb/nobody"):
            assert await rejection(house, path) == 401
            assert await rejection(house, path, headers={"origin": "http://elsewhere"}) == 403


async def test_with_tokens_users_observe_only_their_own_dialogues() -> None:
    ann, bob = ({"token": TOKENS[name]} for name in ("ann", "bob"))
    async with (
        open_chat_house(policy=AccessPolicy(TOKENS)) as house,
        observe(house, **ann) as anns,
        observe(house, **bob) as bobs,
    ):
        async with perturb(house, **ann) as sender, perturb(house, **bob) as other:
            await sender.send(correlation_id="same")
            heard = await anns.hear("same")
            assert bobs.frames == []
            await other.send("hello", correlation_id="same")
            frames = await bobs.hear("same")
            assert only(frames, "message")[0]["template"] == "short_circuit"
            assert anns.told("same") == heard
        assert {each.session_id.partition(":")[0] for _, each in house.access.open_sessions()} == {"ann", "bob"}


async def test_a_foreign_session_cannot_be_entered() -> None:
    async with (
        open_chat_house(policy=AccessPolicy(TOKENS)) as house,
        perturb(house, "?session=mine", token=TOKENS["ann"]),
        perturb(house, "?session=ann:mine", token=TOKENS["bob"]),
    ):
        names = sorted(each.session_id for _, each in house.access.open_sessions())
        assert names == ["ann:mine", "bob:ann:mine"]


@pytest.mark.shows("gateway-78")
@pytest.mark.parametrize("query", ["", "?remote_models=0"])
async def test_consent_of_one_client_sends_no_text_of_another_to_a_remote_model(query: str) -> None:
    told: list[str] = []

    def answer(prompt: Prompt) -> list[Say]:
        told.append(prompt.user)
        return [Say("Well.")]

    model = ScriptedModel(answer, traits=ModelTraits(remote=True))
    async with (
        open_chat_house(model) as house,
        observe(house) as observer,
        perturb(house, "?remote_models=1") as agrees,
        perturb(house, query) as does_not,
    ):
        await agrees.send("I agreed to it.", correlation_id="a")
        await does_not.send("My secret is my own.", correlation_id="b")
        assert "template" not in only(await observer.hear("a"), "message")[0]
        assert only(await observer.hear("b"), "message")[0]["template"] == "fallback"
    assert len(told) == 1
    assert "secret" not in told[0]


async def test_a_sender_gets_the_id_of_its_session(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, [new_key()])
    async with open_chat_house(policy=AccessPolicy(TOKENS), keeper=store) as house:
        ann = {"token": TOKENS["ann"]}
        async with observe(house, **ann) as observer, perturb(house, "?keep_content=1", **ann) as sender:
            await sender.send("My secret.", correlation_id="a")
            await observer.hear("a")
            session_id = dict(sender.socket.handshake_headers)[b"kgent-session"].decode()
            assert b"kgent-session" not in dict(observer.socket.handshake_headers)
        async with perturb(house, "?session=diary", **ann) as sender:
            assert dict(sender.socket.handshake_headers)[b"kgent-session"] == b"ann:diary"
        house.stop()
        await house.stopped.wait()
    assert await store.sessions() == [session_id]
    assert [each.said for each in await store.read(session_id)] == ["My secret."]
    assert await store.erase(session_id)


async def test_the_consent_of_an_open_session_cannot_change() -> None:
    async with open_chat_house() as house, perturb(house, "?session=mine&remote_models=0"):
        assert await rejection(house, "/perturb/default?session=mine&remote_models=1") == 400
        async with perturb(house, "?session=mine"):
            pass
        house.stage.start().begin_turn("Hello?", TurnParams())
        assert await rejection(house, "/perturb/default?session=mine&keep_content=1") == 400


async def test_a_native_session_can_be_entered() -> None:
    async with open_chat_house() as house:
        house.access.start(house.access.policy.admit(None), SessionParams(session_id="native"))
        assert await rejection(house, "/perturb/default?session=native&remote_models=1") == 400
        async with observe(house) as observer, perturb(house, "?session=native") as sender:
            await sender.send(correlation_id="a")
            assert only(await observer.hear("a"), "message")


@pytest.mark.parametrize(
    "path",
    [
        "/perturb/default?session=bad/name",
        "/perturb/default?remote_models=yes",
        "/perturb/default?keep_content=1",
        "/observe/default?after=3",
    ],
)
async def test_an_invalid_query_is_refused(path: str) -> None:
    async with open_chat_house() as house:
        assert await rejection(house, path) == 400


async def test_a_server_that_is_full_is_refused() -> None:
    policy = AccessPolicy(limits=WireLimits(max_connections=1, max_sessions_per_user=1))
    async with open_chat_house(policy=policy) as house, perturb(house):
        assert await rejection(house, "/observe/default") == 503
    policy = AccessPolicy(limits=WireLimits(max_sessions_per_user=1))
    async with open_chat_house(policy=policy) as house, perturb(house):
        assert await rejection(house, "/perturb/default?session=another") == 503


async def test_without_a_gateway_its_paths_do_not_exist() -> None:
    async with open_house() as house:
        assert await rejection(house, "/perturb/default") == 404


# -- coming back


@pytest.mark.shows("gateway-100")
async def test_an_observer_that_comes_back_gets_the_rest() -> None:
    model = HeldModel()
    config = ChatFluxConfig(buffer_chunks=1)
    async with open_chat_house(model, config) as house, perturb(house) as sender:
        async with observe(house) as observer:
            await sender.send(correlation_id="before")
            model.may_go_on.set()
            before = await observer.hear("before")
        model.may_go_on = trio.Event()
        async with observe(house) as observer:
            await sender.send(correlation_id="a b&c")
            await wait_said(house)
        model.may_go_on.set()
        async with observe(house) as whole:
            pass
        async with observe(house, "?correlation_id=a%20b%26c&after=1") as observer:
            await sender.send(correlation_id="later")
            rest = await observer.hear("a b&c", after=1)
            assert [each["sequence"] for each in rest] == [2, 3, 4, 5]
            assert only(rest, "message")[0]["content"] == "Well, good evening."
            assert await observer.hear("later")
            assert observer.told("before") == []
        async with observe(house, "?correlation_id=before&after=0") as observer:
            assert await observer.hear("before") == before
            assert await observer.hear("later")
        assert whole.frames == []


@pytest.mark.shows("gateway-100")
async def test_an_observer_dropped_at_any_point_gets_the_rest_once() -> None:
    """For a completed dialogue, a failed one, and one of a template."""
    model = ScriptedModel(
        lambda prompt: [Say(ANSWERED), *([Fail(ModelError("down"))] if "break" in prompt.user else [])], pace=0.001
    )
    async with open_chat_house(model, ChatFluxConfig(buffer_chunks=2)) as house, perturb(house) as sender:
        async with observe(house) as observer:
            for number, said in enumerate([ASKED, "Please break off now.", "Hello!"]):
                await sender.send(said, correlation_id=str(number))
                await observer.hear(str(number))
        for place in range(len(observer.frames) + 1):
            had, rest = observer.frames[:place], observer.frames[place:]
            last = {each["payload"]["correlation_id"]: each for each in had}
            named = [
                f"correlation_id={name}&after={'done' if each['event_type'] == 'done' else each['sequence']}"
                for name, each in last.items()
            ]
            async with observe(house, f"?{'&'.join(named or ['correlation_id=0'])}") as again:
                for expected in rest:
                    assert await again.receive() == expected


@pytest.mark.shows("gateway-75")
async def test_a_correlation_id_is_forgotten_with_its_session() -> None:
    async with open_chat_house() as house, perturb(house, "?session=mine") as sender:
        async with observe(house) as observer:
            await sender.send(correlation_id="a")
            await observer.hear("a")
        await house.stage.session("mine").close()
        for after in (0, 1):
            async with observe(house, f"?correlation_id=a&after={after}") as observer:
                error, done = await observer.hear("a", after)
                assert error["payload"]["code"] == "SESSION_EXPIRED"
                assert done["payload"]["total_chunks"] == after, "all that it can have had were chunks"


async def test_an_observer_that_had_done_does_not_get_it_again() -> None:
    async with open_chat_house() as house, observe(house) as observer, perturb(house, "?session=mine") as sender:
        for name in "ab":
            await sender.send(correlation_id=name)
            await observer.hear(name)
        had_both = "?correlation_id=a&after=done&correlation_id=b&after=done"
        had_one = "?correlation_id=a&after=done"
        async with observe(house, had_both) as both, observe(house, had_one) as one:
            await sender.send(correlation_id="c")
            await both.hear("c")
            assert {each["payload"]["correlation_id"] for each in both.frames} == {"c"}
            await one.hear("b")
            assert one.told("a") == []
        await house.stage.session("mine").close()
        async with observe(house, had_both) as both, perturb(house) as again:
            await again.send(correlation_id="d")
            await both.hear("d")
            assert {each["payload"]["correlation_id"] for each in both.frames} == {"d"}


async def test_a_late_observer_gets_open_dialogues_from_their_beginning() -> None:
    model = HeldModel()
    async with open_chat_house(model) as house, perturb(house) as sender:
        await sender.send(correlation_id="a")
        await wait_said(house)
        async with observe(house) as observer:
            model.may_go_on.set()
            assert text(await observer.hear("a")) == "Well, good evening."


# -- the connection


async def test_frames_of_an_observer_are_ignored() -> None:
    async with open_chat_house() as house, observe(house) as observer, perturb(house) as sender:
        await observer.socket.send_message("What?")
        await sender.send(correlation_id="a")
        assert await observer.hear("a") == observer.frames


async def test_a_frame_that_is_too_big_ends_the_connection() -> None:
    policy = AccessPolicy(limits=WireLimits(max_frame_bytes=300))
    async with open_chat_house(policy=policy) as house, perturb(house) as sender:
        await sender.send("x" * 400)
        with pytest.raises(ConnectionClosed) as closed:
            await sender.receive()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1009


async def test_shutdown_ends_every_dialogue_first() -> None:
    async with (
        open_chat_house(saying(Say("Well,"), Stall())) as house,
        observe(house) as observer,
        perturb(house) as sender,
    ):
        await sender.send(correlation_id="a")
        await wait_said(house)
        house.stop()
        frames = await observer.hear("a")
        assert only(frames, "error")[0]["code"] == "SESSION_EXPIRED"
        assert text(frames) == "Well,", "what waited to be joined with more is told"
        assert only(frames, "done")[0]["total_chunks"] == 1
        for client in (observer, sender):
            client.frames.clear()
            with pytest.raises(ConnectionClosed) as closed:
                await client.hear("nothing more")
            assert closed.value.reason is not None
            assert closed.value.reason.code == 1001


async def test_a_lost_sender_does_not_end_its_dialogue() -> None:
    model = HeldModel()
    async with open_chat_house(model) as house, observe(house) as observer:
        async with perturb(house) as sender:
            await sender.send(ASKED, correlation_id="a")
            await wait_said(house)
        model.may_go_on.set()
        assert only(await observer.hear("a"), "message")
