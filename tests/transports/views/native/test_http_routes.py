"""HTTP routes: the result and the refusals of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson
import pytest
import trio
from attrs import evolve

from footlights import (
    Intent,
    IntentType,
    InterruptReason,
    Limits,
    MemoryLedger,
    SessionParams,
    ToolContext,
    TurnInterrupted,
    UnknownSession,
    tool,
)
from footlights.authority import own_approvals, patch, with_approvals
from footlights.authority.rules import accept, every_turn
from footlights.authority.world import JsonWorld, amended, digest_of
from footlights.testing import only
from footlights_actors import Call, Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.policy import AccessPolicy, WireLimits
from tests.kit.peers.http_peer import TALK, Answer, House, HttpGuest, open_house, refused, taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import Cast
    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.visibility import Visibility
    from footlights.authority.world import World

STALLING = ScriptedModel(lambda _: (Say("Well,"), Stall()))
ANN, BOB, EVE = (f"{name}-has-a-secret-token" for name in ("ann", "bob", "eve"))
JSON = {"content-type": "application/json"}


class ListingLedger(MemoryLedger):
    """A ledger that can list what a session committed."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[CommitRecord] = []

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await super().append(records, world, requests)
        self._kept += records

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        return [record for record in self._kept if record.session_id == session_id][-limit:]


class BrokenLedger(MemoryLedger):
    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        raise ValueError("my name is Edda")


def renting_cast() -> Cast:
    return standard_cast(
        ScriptedModel(lambda _: TALK),
        world=JsonWorld({"rooms": 3}),
        rules={"house": every_turn(lambda *_: accept(patch.replace("/rooms", value=2)))},
    )


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# -- sessions and turns


async def test_a_session_may_be_named_and_started_without_a_body() -> None:
    async with open_house() as house:
        assert (await house.start(SessionParams(session_id="inn"))).session_id == "inn"
        assert taken(await house.client.post("/v1/sessions"), 201) == {"session_id": "s1-000001"}
        assert refused(await house.client.post("/v1/sessions", json={"params": {"session_id": "inn"}})) == (
            409,
            "session_in_use",
        )


async def test_closing_a_session_settles_its_turns_and_ends_its_streams() -> None:
    async with open_house(STALLING) as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        async with guest.follow() as stream:
            await guest.close()
            events = [event async for event in stream]
        assert only(events, TurnInterrupted).reason is InterruptReason.SESSION_CLOSED
        assert events[-1].turn_id == turn_id
        assert stream.notices == [{"notice": "ended", "session_id": guest.session_id}]
        with pytest.raises(UnknownSession):
            await guest.close()


async def test_a_settled_turn_has_a_summary_of_its_time() -> None:
    async with open_house() as house:
        guest = await house.start()
        turn_id = await guest.begin_turn("A room?")
        await guest.finalize(turn_id)
        summary = taken(await house.client.get(f"/v1/sessions/{guest.session_id}/turns/{turn_id}"))["summary"]
        assert [summary["turn_id"], summary["outcome"]] == [turn_id, "ok"]
        assert {"queue", "first_token", "judge", "write"} <= {each["part"] for each in summary["parts"]}
        unknown = await house.client.get(f"/v1/sessions/{guest.session_id}/turns/t1-000099")
        assert refused(unknown) == (404, "unknown_turn")


async def test_an_idempotency_key_begins_one_turn() -> None:
    async with open_house(STALLING) as house:
        guest = await house.start()
        path, key = f"/v1/sessions/{guest.session_id}/turns", {"idempotency-key": 'a key: "1"'}
        for _ in range(3):
            answer = await house.client.post(path, json={"input": "A room?"}, headers=key)
            assert taken(answer, 202) == {"turn_id": "t1-000001"}
        other = await house.client.post(path, json={"input": "A bath?"}, headers=key)
        assert refused(other) == (400, "invalid_command")
        assert "bath" not in other.text


@pytest.mark.parametrize("keys", [[b""], [b"r" * 129], [b"\xc3\xa9"], [b"a\tb"], [b"one", b"other"], [b"one", b"one"]])
async def test_a_malformed_idempotency_key_is_refused(keys: list[bytes]) -> None:
    async with open_house() as house:
        guest = await house.start()
        headers = [(b"idempotency-key", key) for key in keys]
        answer = await house.client.post(f"/v1/sessions/{guest.session_id}/turns", json={"input": "?"}, headers=headers)
        assert refused(answer) == (400, "invalid_command")
        assert await guest.begin_turn("A room?") == "t1-000001"


async def test_a_request_id_is_a_header_and_not_in_the_body() -> None:
    async with open_house() as house:
        guest = await house.start()
        body = {"input": "A room?", "request_id": "mine"}
        answer = await house.client.post(f"/v1/sessions/{guest.session_id}/turns", json=body)
        assert refused(answer) == (400, "invalid_command")
        assert "Idempotency-Key" in answer.text


# -- what is true


async def test_a_part_of_the_world_has_its_path_and_its_digest_as_etag() -> None:
    rooms: Any = {f"room {i}": {"guest": None, "a/b": [i]} for i in range(100)}
    cast = evolve(standard_cast(), world=JsonWorld({"rooms": rooms, "treasure": 1, "log": "x" * 1_000_000}))
    cast = evolve(cast, visibility=lambda view, user: amended(view, patch.remove("/treasure")))
    async with open_house(cast=cast) as house:
        answer = await house.client.get("/v1/world/rooms/room 7/a~1b/0")
        assert taken(answer) == {"world": 7}
        answer = await house.client.get("/v1/world/rooms")
        assert taken(answer) == {"world": rooms}
        assert answer.headers["etag"] == f'"{digest_of(JsonWorld({"rooms": rooms}).view()["rooms"])}"'
        again = await house.client.get("/v1/world/rooms", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert refused(await house.client.get("/v1/world/treasure")) == (404, "invalid_command")
        assert refused(await house.client.get("/v1/world/rooms/none/of/these")) == (404, "invalid_command")
        assert refused(await house.client.get("/v1/world")) == (413, "too_large")


@pytest.mark.parametrize("size", [10, 2_000])
async def test_where_something_is_hidden_there_is_no_digest(size: int) -> None:
    def hiding(view: Any, user: object) -> Any:
        return {**view, "treasure": "somewhere"}

    cast = evolve(standard_cast(), world=JsonWorld({"inn": {"n": "x" * size}, "treasure": 1}), visibility=hiding)
    async with open_house(cast=cast) as house:
        answer = await house.client.get("/v1/world")
        assert taken(answer) == {"world": {"inn": {"n": "x" * size}, "treasure": "somewhere"}}
        assert "etag" not in answer.headers
        assert "etag" not in (await house.client.get("/v1/world/treasure")).headers
        assert "etag" in (await house.client.get("/v1/world/inn")).headers


async def test_the_world_is_what_was_committed_last() -> None:
    async with open_house(cast=renting_cast()) as house:
        guest = await house.start()
        assert taken(await house.client.get("/v1/world")) == {"world": {"rooms": 3}}
        await guest.finalize(await guest.begin_turn("A room?"))
        assert taken(await house.client.get("/v1/world")) == {"world": {"rooms": 2}}


@tool
async def sell_horse(context: ToolContext) -> str:
    """Sell a horse."""
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id, {"act": "sell"}))
    return "It is written down."


def question(_view: object, _intent: Intent) -> str:
    return "Sell a horse?"


def asking_cast(visibility: Visibility = own_approvals) -> Cast:
    """A cast that sells nothing before it was answered."""
    return standard_cast(
        ScriptedModel(lambda prompt: [Say("Well.")] if prompt.exchanges else [Call("sell_horse")]),
        tools=[sell_horse],
        world={"horses": 2},
        rules=with_approvals({}, question),
        visibility=visibility,
    )


async def test_users_do_not_see_what_others_are_asked_and_an_operator_does() -> None:
    policy = AccessPolicy({"ann": ANN, "bob": BOB, "eve": EVE}, roles={"eve": {"operator": True}})
    async with open_house(cast=asking_cast(), policy=policy, headers=bearer(ANN)) as house:
        guest = await house.start()
        await guest.finalize(await guest.begin_turn("A horse!"))
        anns, bobs, eves = [
            taken(await house.client.get("/v1/world", headers=bearer(token)))["world"] for token in (ANN, BOB, EVE)
        ]
    assert bobs == {"horses": 2, "approvals": {"asked": 1, "pending": {}}}
    assert anns["approvals"]["pending"]["a-000001"]["session_id"] == guest.session_id
    assert eves == anns


async def test_a_host_decides_what_is_seen_of_its_world() -> None:
    cast = asking_cast(lambda view, user: {**view, "you": user.name})
    async with open_house(cast=cast, policy=AccessPolicy({"ann": ANN}), headers=bearer(ANN)) as house:
        assert taken(await house.client.get("/v1/world")) == {"world": {"horses": 2, "you": "ann"}}


async def test_a_visibility_that_fails_shows_nothing() -> None:
    async with open_house(cast=asking_cast(lambda view, _: view["a secret"])) as house:
        assert refused(await house.client.get("/v1/world")) == (500, "internal")


async def test_a_visibility_that_exits_fails_one_request_and_not_the_server() -> None:
    def leave(_view: object, _user: object) -> object:
        raise SystemExit

    async with open_house(cast=asking_cast(leave)) as house:
        assert (await house.client.get("/v1/world")).status_code == 500
        assert (await house.client.get("/livez")).status_code == 200


async def test_the_ledger_tells_the_newest_commits_of_one_session() -> None:
    async with open_house(ledger=ListingLedger()) as house:
        guest, neighbour = await house.start(), await house.start()
        decisions = [await guest.finalize(await guest.begin_turn("A room?")) for _ in range(3)]
        await neighbour.finalize(await neighbour.begin_turn("A beer?"))
        commits = taken(await house.client.get(f"{guest.path}/ledger"))["commits"]
        assert [commit["commit_digest"] for commit in commits] == [each.commit_digest for each in decisions]
        newest = taken(await house.client.get(f"{guest.path}/ledger?limit=1"))["commits"]
        assert newest == commits[-1:]


async def test_the_ledger_of_a_closed_session_is_served_and_an_unknown_session_is_refused() -> None:
    async with open_house(ledger=ListingLedger()) as house:
        guest, silent = await house.start(), await house.start()
        await guest.finalize(await guest.begin_turn("A room?"))
        await guest.close()
        assert len(taken(await house.client.get(f"{guest.path}/ledger"))["commits"]) == 1
        assert taken(await house.client.get(f"{silent.path}/ledger")) == {"commits": []}
        assert refused(await house.client.get("/v1/sessions/nobody/ledger")) == (404, "unknown_session")


@pytest.mark.parametrize("limit", ["0", "201", "-1", "1.5", "", "x", "٣", "99999"])
async def test_a_limit_is_a_number_within_bounds(limit: str) -> None:
    async with open_house(ledger=ListingLedger()) as house:
        guest = await house.start()
        answer = await house.client.get(f"{guest.path}/ledger", params={"limit": limit})
        assert refused(answer) == (400, "invalid_command")


async def test_an_internal_error_is_reported_and_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    async with open_house(ledger=BrokenLedger()) as house:
        guest = await house.start()
        answer = await house.client.get(f"{guest.path}/ledger")
        assert refused(answer) == (500, "internal")
        assert "Edda" not in answer.text
        assert (await house.client.get("/healthz")).status_code == 200
    (logged,) = [record.getMessage() for record in caplog.records if record.name == "footlights.incidents"]
    assert logged.startswith("http_request failed: ValueError at ")
    assert "Edda" not in logged


# -- for operators and browsers


async def test_health_needs_no_token_and_metrics_do() -> None:
    async with open_house(policy=AccessPolicy({"ann": ANN})) as house:
        assert taken(await house.client.get("/healthz")) == {"status": "ok"}
        assert refused(await house.client.get("/metrics")) == (401, "unauthorized")
        answer = await house.client.get("/metrics", headers=bearer(ANN))
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "footlights_sessions 0.0" in answer.text


async def test_the_javascript_client_is_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    source = tmp_path / "footlights.js"
    monkeypatch.setattr("footlights_transports.http.javascript.STATIC", tmp_path)
    async with open_house(policy=AccessPolicy({"ann": ANN})) as house:
        assert refused(await house.client.get("/footlights.js")) == (404, "invalid_command")
        source.write_text("export const a = 'é';\n", encoding="utf-8")
        answer = await house.client.get("/footlights.js")
        assert answer.text == "export const a = 'é';\n"
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_the_openapi_document_is_served() -> None:
    async with open_house() as house:
        document = taken(await house.client.get("/v1/openapi.json"))
        assert document["openapi"] == "3.1.0"
        assert "/v1/sessions/{session_id}/events" in document["paths"]


# -- refusals


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/v1/sessions/", 404),
        ("GET", "/v1/sessions", 405),
        ("PUT", "/v1/sessions/inn", 405),
        ("POST", "/healthz", 405),
        ("HEAD", "/v1/sessions/inn/events", 405),
        ("OPTIONS", "/v1/sessions", 405),
    ],
)
async def test_http_itself_refuses_in_json_too(method: str, path: str, status: int) -> None:
    async with open_house() as house:
        answer = await house.client.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
        assert ("allow" in answer.headers) == (status == 405)
        assert method == "HEAD" or refused(answer) == (status, "invalid_command")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "valid JSON"),
        (b"\xff", "valid JSON"),
        (b'{"input": NaN}', "valid JSON"),
        (b"[]", "object"),
        (b'{"input": ' + b"[" * 20 + b"]" * 20 + b"}", "nests"),
        (b"{}", "input: is missing"),
        (b"", "input: is missing"),
        (b'{"input": 7}', "input: must be a string"),
        (b'{"input": ""}', "The input is empty."),
        (b'{"input": "Hi", "session_id": "inn"}', "session_id: is in the address"),
        (b'{"input": "Hi", "Edda": 1}', "is not a field"),
        (b'{"input": "Hi", "params": {"busy": "Edda"}}', "params.busy: must be one of"),
        (b'{"input": "Hi", "params": {"sampling": {"temperature": 1e999}}}', "valid JSON"),
        (b'{"input": "Hi", "params": {"sampling": {"temperature": 3}}}', "temperature"),
        (b'{"op": "close", "input": "Hi"}', "op: is not a field"),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused_and_the_connection_lives(body: bytes, told: str) -> None:
    async with open_house() as house:
        guest = await house.start()
        answer = await house.client.post(f"{guest.path}/turns", content=body, headers=JSON)
        assert refused(answer) == (400, "invalid_command")
        assert told in answer.json()["error"]["message"]
        assert await guest.begin_turn("A room?") == "t1-000001"


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
async def test_a_body_must_say_that_it_is_json(content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    async with open_house() as house:
        answer = await house.client.post("/v1/sessions", content=b"{}", headers=headers)
        assert refused(answer) == (415, "invalid_command")
        fine = await house.client.post(
            "/v1/sessions", content=b"{}", headers={"content-type": "Application/JSON; charset=utf-8"}
        )
        assert fine.status_code == 201


async def test_each_error_has_its_status() -> None:
    limits = Limits(max_input_bytes=10, max_sessions=1)
    async with open_house(STALLING, limits=limits) as house:
        nobody = HttpGuest(house.client, "nobody")
        assert refused(await house.client.delete(nobody.path)) == (404, "unknown_session")
        assert refused(await house.client.get(f"{nobody.path}/events")) == (404, "unknown_session")
        guest = await house.start()
        assert refused(await house.client.post("/v1/sessions")) == (409, "busy")
        turns = f"{guest.path}/turns"
        assert refused(await house.client.post(turns, json={"input": "x" * 11})) == (413, "too_large")
        turn_id = await guest.begin_turn("A room?")
        rejecting = {"input": "A room?", "params": {"busy": "reject"}}
        assert refused(await house.client.post(turns, json=rejecting)) == (409, "busy")
        assert refused(await house.client.post(f"{turns}/t1-000009/cancel")) == (404, "unknown_turn")
        assert refused(await house.client.post(f"{turns}/t1-000009/finalize")) == (404, "unknown_turn")
        answer = await house.client.post(f"{turns}/{turn_id}/heard", json={"seq": 99})
        assert refused(answer) == (400, "invalid_command")
        house.access.admission.close_doors()
        assert refused(await house.client.post(turns, json={"input": "A room?"})) == (409, "session_closed")


async def test_a_body_has_a_largest_size() -> None:
    async with open_house(wire_limits=WireLimits(max_frame_bytes=1_000)) as house:
        guest = await house.start()
        said = {"input": "x" * 1_000_000}
        assert refused(await house.client.post(f"{guest.path}/turns", json=said)) == (413, "too_large")
        assert await guest.begin_turn("x" * 900) == "t1-000001"


# -- who may ask


async def test_a_token_opens_the_door_and_nothing_else_does() -> None:
    async with open_house(policy=AccessPolicy({"ann": ANN})) as house:
        for headers in ({}, bearer("nonsense-nonsense"), {"authorization": ANN}, {"authorization": "Bearer"}):
            answer = await house.client.post("/v1/sessions", headers=headers)
            assert refused(answer) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert ANN not in answer.text
        assert taken(await house.client.post("/v1/sessions", headers=bearer(ANN)), 201) == {
            "session_id": "ann:s1-000001"
        }


async def test_a_foreign_session_looks_as_if_it_did_not_exist() -> None:
    async with open_house(policy=AccessPolicy({"ann": ANN, "bob": BOB}), ledger=ListingLedger()) as house:
        taken(await house.client.post("/v1/sessions", headers=bearer(ANN)), 201)
        for method, rest, body in [
            ("DELETE", "", None),
            ("GET", "/events", None),
            ("GET", "/ledger", None),
            ("POST", "/cancel", None),
            ("POST", "/turns", {"input": "A room?"}),
            ("POST", "/turns/t1-000001/finalize", None),
            ("POST", "/turns/t1-000001/cancel", None),
            ("POST", "/turns/t1-000001/heard", {"seq": 0}),
        ]:
            answers = [
                await house.client.request(method, f"/v1/sessions/{name}{rest}", json=body, headers=bearer(BOB))
                for name in ("ann:s1-000001", "ann:s1-000002", "bob:s1-000009")
            ]
            assert {answer.text for answer in answers} == {answers[0].text}
            assert refused(answers[0]) == (404, "unknown_session")


async def test_pages_get_in_only_from_origins_on_the_list() -> None:
    async with open_house(policy=AccessPolicy(origins=["https://inn.example"])) as house:
        evil = await house.client.post("/v1/sessions", headers={"origin": "https://evil.example"})
        assert refused(evil) == (403, "unauthorized")
        assert "access-control-allow-origin" not in evil.headers
        good = await house.client.post("/v1/sessions", headers={"origin": "https://inn.example"})
        assert good.status_code == 201
        assert good.headers["access-control-allow-origin"] == "https://inn.example"
        assert good.headers["vary"] == "origin"
        wrong = await house.client.get("/nowhere", headers={"origin": "https://inn.example"})
        assert wrong.headers["access-control-allow-origin"] == "https://inn.example"


@pytest.mark.parametrize("path", ["/footlights.js", "/healthz", "/v1/openapi.json"])
async def test_any_page_may_read_what_is_public(path: str) -> None:
    async with open_house(policy=AccessPolicy({"ann": ANN}, origins=["https://inn.example"])) as house:
        answer = await house.client.get(path, headers={"origin": "https://any.example"})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://any.example"


async def test_what_is_public_is_still_hidden_from_a_name_that_was_made_to_point_here() -> None:
    async with open_house() as house:
        assert refused(await house.client.get("/healthz", headers={"host": "evil.example"})) == (403, "unauthorized")


async def test_a_page_may_ask_first_what_it_may_ask() -> None:
    async with open_house(policy=AccessPolicy({"ann": ANN}, origins=["https://inn.example"])) as house:
        asking = {"access-control-request-method": "DELETE", "access-control-request-headers": "authorization"}
        answer = await house.client.options("/v1/sessions/inn", headers={"origin": "https://inn.example", **asking})
        assert answer.status_code == 204
        assert "DELETE" in answer.headers["access-control-allow-methods"]
        assert {"authorization", "idempotency-key"} <= {*answer.headers["access-control-allow-headers"].split(", ")}
        evil = await house.client.options("/v1/sessions/inn", headers={"origin": "https://evil.example", **asking})
        assert refused(evil) == (403, "unauthorized")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7601", "[", "10.0.0.1", ""])
async def test_without_tokens_a_name_that_was_made_to_point_here_does_not_get_in(host: str) -> None:
    async with open_house() as house:
        assert refused(await house.client.get("/v1/world", headers={"host": host})) == (403, "unauthorized")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:7601", "[::1]:7601", "LocalHost:1"])
async def test_without_tokens_this_machine_gets_in_by_any_of_its_names(host: str) -> None:
    async with open_house() as house:
        assert (await house.client.get("/v1/world", headers={"host": host})).status_code == 200


async def test_with_tokens_the_host_may_be_any() -> None:
    async with open_house(policy=AccessPolicy({"ann": ANN}), headers=bearer(ANN)) as house:
        assert (await house.client.get("/v1/world", headers={"host": "inn.example"})).status_code == 200


async def test_only_a_game_server_commits_outside_of_sessions() -> None:
    policy = AccessPolicy({"ann": ANN, "eve": EVE}, roles={"eve": {"game_server": True}})
    body = {"intents": [{"ref": "quest", "payload": {"coins": 1}}], "why": "the quest is done"}
    async with open_house(policy=policy) as house:
        assert refused(await house.client.post("/v1/commits", json=body, headers=bearer(ANN)))[0] == 401
        decided = taken(await house.client.post("/v1/commits", json=body, headers=bearer(EVE)))
        assert (decided["commit_outcome"], decided["issues"]) == ("ok", [])


def paying_cast(visibility: Visibility = own_approvals) -> Cast:
    def pay(world: Any, intents: tuple[Intent, ...]) -> Any:
        return accept(*(patch.replace("/purse", world["purse"] + 1) for _ in intents))

    world = JsonWorld({"purse": 0, "secret": 7})
    return standard_cast(ScriptedModel(lambda _: TALK), world=world, rules={"pay": pay}, visibility=visibility)


async def commits_in(house: House, count: int, **params: str) -> list[Any]:
    """So many blocks with data of the feed, over a connection that breaks then."""
    text = b""
    async with await trio.open_tcp_stream("127.0.0.1", house.listening.port) as stream:
        answer = Answer(stream)
        await answer.ask("GET", f"/v1/commits?{urlencode(params)}", {"host": "localhost", **bearer(EVE)})
        assert answer.status == 200
        while text.count(b"\ndata: ") < count or not text.endswith(b"\n\n"):
            data = await answer.read()
            assert data
            text += data
    return [orjson.loads(each.partition(b"\ndata: ")[2]) for each in text.split(b"\n\n") if b"\ndata: " in each]


GAME = {"eve": {"game_server": True}}
PAYING = {"intents": [{"ref": "quest"}], "why": "the quest is done"}


async def test_a_game_server_follows_what_changed_and_resumes() -> None:
    policy = AccessPolicy({"ann": ANN, "eve": EVE}, roles=GAME)
    async with open_house(policy=policy, cast=paying_cast()) as house:
        for _ in range(3):
            taken(await house.client.post("/v1/commits", json=PAYING, headers=bearer(EVE)))
        found = await commits_in(house, 3, after="genesis", under="/purse")
        assert [each["changes"][0]["value"] for each in found] == [1, 2, 3]
        assert {each["why"] for each in found} == {"the quest is done"}
        assert await commits_in(house, 2, after=found[0]["commit_id"]) == found[1:]
        unknown = await house.client.get("/v1/commits?after=c-0", headers=bearer(EVE))
        assert refused(unknown) == (400, "invalid_command")
        assert refused(await house.client.get("/v1/commits?under=x", headers=bearer(EVE))) == (400, "invalid_command")


async def test_a_player_reads_what_he_sees_change_and_resumes() -> None:
    def no_secret(view: Any, user: object) -> Any:
        return {name: each for name, each in view.items() if name != "secret"}

    async def read(house: House, blocks: int, **headers: str) -> list[dict[bytes, bytes]]:
        text = b""
        async with await trio.open_tcp_stream("127.0.0.1", house.listening.port) as stream:
            answer = Answer(stream)
            await answer.ask("GET", "/v1/commits", {"host": "localhost", **bearer(ANN), **headers})
            while text.count(b"\n\n") < blocks:
                text += await answer.read()
        lines = [each.split(b"\n") for each in text.split(b"\n\n")[:blocks]]
        return [dict(line.split(b": ", 1) for line in block) for block in lines]

    policy = AccessPolicy({"ann": ANN, "eve": EVE}, roles=GAME)
    async with open_house(policy=policy, cast=paying_cast(no_secret)) as house, trio.open_nursery() as nursery:
        found: list[dict[bytes, bytes]] = []

        async def follow() -> None:
            found.extend(await read(house, 2))

        nursery.start_soon(follow)
        while len(found) < 2:
            taken(await house.client.post("/v1/commits", json=PAYING, headers=bearer(EVE)))
        began, first = found
        assert began[b"event"] == b"world"
        purse = orjson.loads(began[b"data"])["world"]["purse"]
        told = orjson.loads(first[b"data"])
        assert told["changes"] == [{"op": "replace", "path": "/purse", "value": purse + 1}]
        assert told["cursor"].encode() == first[b"id"]
        taken(await house.client.post("/v1/commits", json=PAYING, headers=bearer(EVE)))
        going, second = await read(house, 2, **{"last-event-id": first[b"id"].decode()})
        assert going.keys() == {b"id"}
        assert orjson.loads(second[b"data"])["changes"][0]["value"] == purse + 2


async def test_a_part_that_is_hidden_cannot_be_followed() -> None:
    def hide(view: Any, user: object) -> Any:
        return {name: each for name, each in view.items() if name != "secret"}

    async with open_house(policy=AccessPolicy({"eve": EVE}, roles=GAME), cast=paying_cast(hide)) as house:
        for under in ("", "/secret"):
            hidden = await house.client.get("/v1/commits", params={"under": under}, headers=bearer(EVE))
            assert refused(hidden)[1] == "unauthorized"
        taken(await house.client.post("/v1/commits", json=PAYING, headers=bearer(EVE)))
        assert len(await commits_in(house, 1, after="genesis", under="/purse")) == 1


async def test_a_feed_ends_when_its_part_is_hidden() -> None:
    def hide_riches(view: Any, user: object) -> Any:
        return {**view, "purse": "a lot"} if view["purse"] > 1 else view

    async with open_house(policy=AccessPolicy({"eve": EVE}, roles=GAME), cast=paying_cast(hide_riches)) as house:
        taken(await house.client.post("/v1/commits", json=PAYING, headers=bearer(EVE)))
        async with await trio.open_tcp_stream("127.0.0.1", house.listening.port) as stream:
            answer, text = Answer(stream), b""
            await answer.ask("GET", "/v1/commits?after=genesis&under=/purse", {"host": "localhost", **bearer(EVE)})
            while b"the quest is done" not in text:
                text += await answer.read()
            taken(await house.client.post("/v1/commits", json=PAYING, headers=bearer(EVE)))
            text = (text + await answer.read_all()).partition(b"event: ")[2]
        assert text == b'detached\ndata: {"notice":"detached","reason":"unauthorized"}\n\n'


@pytest.mark.parametrize("tokens", [{}, {"ann": ANN, "eve": EVE}], ids=["no tokens", "tokens"])
async def test_nobody_but_a_game_server_says_something_about_a_player(tokens: dict[str, str]) -> None:
    policy = AccessPolicy(tokens, roles={"eve": {"game_server": True}} if tokens else {})
    body = {"params": {"session_id": "bob", "about": {"name": "Bob"}}}
    async with open_house(policy=policy) as house:
        answer = await house.client.post("/v1/sessions", json=body, headers=bearer(ANN) if tokens else {})
        assert refused(answer) == (401, "unauthorized")
        assert house.stage.open_sessions == 0
        if tokens:
            started = taken(await house.client.post("/v1/sessions", json=body, headers=bearer(EVE)), 201)
            assert started["session_id"] == "eve:bob"
            too_much = {"params": {"about": {"name": "B" * 5_000}}}
            assert refused(await house.client.post("/v1/sessions", json=too_much, headers=bearer(EVE)))[0] == 400
