"""The OpenAPI document is true: whatever a client makes of it, the server answers as the document says."""

from __future__ import annotations

from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import requests
import schemathesis
import trio
from attrs import frozen
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.routing import Route

from footlights import SessionParams, TurnParams, open_stage
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.config.views import VIEWS
from footlights_transports.http.app import document_of_routes, http_app
from footlights_transports.http.errors import STATUS
from footlights_transports.server.metrics import Metrics
from footlights_transports.worlds.world import OneWorld
from tests.kit.serving import serve_http, with_routes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from schemathesis.schemas import BaseSchema

    from footlights_transports.server.listening import Listening

Operation: TypeAlias = "schemathesis.schemas.APIOperation[Any, Any, Any, Any]"


def operations_of(schema: BaseSchema) -> list[Operation]:
    return [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]


TOKEN = "a-token-for-this-test-only"
ANN = User("ann")
SCHEMA = schemathesis.openapi.from_dict(document_of_routes(VIEWS, wants_tokens=True))
OPERATIONS = operations_of(SCHEMA)
EVENTS = "/v1/sessions/{session_id}/events"
# No schema can say which models, personas and sessions there are, so some of what fits it is refused.
UNSAYABLE: list[Any] = [positive_data_acceptance]
OPTIONS = settings(
    max_examples=8,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

load_all_checks()


@frozen
class Served:
    address: str
    session: requests.Session
    stop: Callable[[], None]


@pytest.fixture(scope="module")
def served() -> Generator[Served]:
    """A server in a thread of its own, with a session that has a settled turn."""
    ready: list[Served] = []
    thread = Thread(target=trio.run, args=(partial(serve, ready),), name="server")
    thread.start()
    try:
        while not ready and thread.is_alive():
            thread.join(0.01)
        yield ready[0]
    finally:
        for each in ready:
            each.session.close()
            each.stop()
        thread.join()


async def serve(ready: list[Served]) -> None:
    many, at_once = 1e6, 1_000_000
    limits = WireLimits(
        commands_per_second=many,
        command_burst=at_once,
        user_commands_per_second=many,
        user_command_burst=at_once,
    )
    cast = standard_cast(ScriptedModel(lambda _: (Say("Hm."),)))
    async with open_stage(cast) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, AccessPolicy({"ann": TOKEN}, limits=limits))
        session = access.start(ANN, SessionParams(session_id="inn"))
        await access.finalize(ANN, session.session_id, session.begin_turn("A room?", TurnParams()))
        listening: Listening = await nursery.start(partial(serve_http, access, host="127.0.0.1", port=0))
        token = trio.lowlevel.current_trio_token()
        stop = partial(token.run_sync_soon, nursery.cancel_scope.cancel)
        ready.append(Served(f"http://127.0.0.1:{listening.port}", requests.Session(), stop))


def can_be_wrong(operation: Operation) -> bool:
    return bool(operation.body or operation.query or operation.headers)


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        pytest.param(operation, mode, id=f"{operation.label} {mode.value}")
        for operation in OPERATIONS
        if operation.label != "GET /v1/commits"  # it does not end; test_http_routes.py follows it
        for mode in GenerationMode
        if mode is GenerationMode.POSITIVE or can_be_wrong(operation)
    ],
)
def test_every_answer_is_as_the_document_says(operation: Operation, mode: GenerationMode, served: Served) -> None:
    known = {"session_id": "ann:inn", "turn_id": "t1-000001", "agent": "default", "run_id": "r1-000001"}
    named = {name: value for name, value in known.items() if operation.path_parameters.get(name) is not None}
    # A stream of a session that there is would not end, and one that was closed is no use to the others.
    use_known = mode is GenerationMode.POSITIVE and operation.path != EVENTS and operation.method != "delete"
    cases = operation.as_strategy(mode)
    if use_known and named:
        cases |= operation.as_strategy(mode, path_parameters=named)

    @OPTIONS
    @given(cases)
    def ask(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(
            base_url=served.address,
            session=served.session,
            headers={"Authorization": f"Bearer {TOKEN}"},
            excluded_checks=UNSAYABLE,
            timeout=10,
        )

    ask()


async def test_every_route_is_in_the_document_and_nothing_else_is() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        access = SessionAccess(stage)
        app = http_app(OneWorld(access, [each.mount(access) for each in with_routes()]), Metrics())
    routes = {
        (route.path.replace("{path:path}", "{path}"), method.lower())
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or ())
        if method != "HEAD"
    }
    assert routes == {(operation.path, operation.method) for operation in OPERATIONS}


@pytest.mark.parametrize("wants_tokens", [True, False])
def test_tokens_are_asked_for_only_where_they_are_wanted(wants_tokens: bool) -> None:
    schema = schemathesis.openapi.from_dict(document_of_routes(VIEWS, wants_tokens=wants_tokens))
    guarded = {each.path for each in operations_of(schema) if "security" in each.definition.raw}
    public = {"/healthz", "/livez", "/readyz", "/v1/openapi.json", "/footlights.js", "/footlights-ag-ui.js"}
    public |= {"/", "/console/files/{name}"}
    everything = {operation.path for operation in OPERATIONS}
    assert guarded == (everything - public if wants_tokens else set())


def test_every_status_is_explained() -> None:
    explained = {int(status) for status in SCHEMA.raw_schema["components"]["responses"]}
    assert set(STATUS.values()) <= explained
