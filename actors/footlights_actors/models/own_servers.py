"""Model servers of the player's own machine: what Ollama, LM Studio and llama.cpp offer on their usual loopback ports.

    reports = await find_models()
    best(reports)       # the largest instruct model of the first server that has one

All servers are asked at once, for their list of models and nothing else, with a short timeout. Only loopback addresses
are asked, without a proxy and without a key. A model that a local server forwards to another machine is marked
`remote`, and never chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import httpx2
import orjson
import trio
from attrs import frozen

from footlights_actors.models.http_stream import stop_reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TIMEOUT = 1.0
"""Seconds for a server to answer."""
MAX_BYTES = 4_000_000
MAX_NAME_CHARS = 200

_COUNT = re.compile(r"(?:(\d{1,6})x)?(\d{1,6}(?:\.\d{1,6})?) ?([bm])(?![a-z])", re.IGNORECASE)
_UNITS = {"b": 1e9, "m": 1e6}
_NO_CHAT = re.compile(r"embed|rerank|whisper|\bclip\b|(?:^|[-_/])bge(?:[-_]|$)|minilm", re.IGNORECASE)
_BASE = re.compile(r"[-_:](?:base|text|pt|pretrained)(?:[-_:.@]|$)", re.IGNORECASE)
_INSTRUCT = re.compile(r"instruct|chat|[-_:]it(?:[-_:.@]|$)", re.IGNORECASE)
_ENCODERS = ("bert", "nomic-bert", "xlm-roberta", "clip")


@frozen(kw_only=True)
class OfferedModel:
    """A model that a server offers."""

    name: str
    parameters: float = 0.0
    """The number of its parameters; 0 if neither the server nor the name says it."""
    chats: bool = True
    """Whether it is made for conversations: neither an embedding nor a base model."""
    remote: bool = False
    """Whether its server forwards prompts to another machine."""


Read: TypeAlias = Callable[[Any], Iterator[OfferedModel]]


@frozen
class OwnServer:
    """A kind of server, and where it listens by default."""

    name: str
    address: str
    """Host and port."""
    lists: tuple[tuple[str, Read], ...]
    """The paths of its lists of models with their readers; the first one that exists is used."""

    @property
    def base_url(self) -> str:
        """The address of its OpenAI-compatible API."""
        return f"http://{self.address}/v1"


@frozen(kw_only=True)
class ServerReport:
    """What one server offers, or why that is not known."""

    server: OwnServer
    models: tuple[OfferedModel, ...] = ()
    problem: str | None = None


# -- the lists of the vendors


def ollama_models(document: Any) -> Iterator[OfferedModel]:
    """Those of Ollama's `/api/tags`."""
    for each in _entries(document["models"]):
        details = cast("Mapping[str, Any]", each.get("details") or {})
        families = [details.get("family"), *(details.get("families") or ())]
        yield OfferedModel(
            name=_name(each["name"]),
            parameters=_parameters(str(details.get("parameter_size") or each["name"])),
            chats=_chats(each["name"]) and not any(family in _ENCODERS for family in families),
            remote=bool(each.get("remote_host")),
        )


def lm_studio_models(document: Any) -> Iterator[OfferedModel]:
    """Those of LM Studio's `/api/v0/models`."""
    for each in _entries(document["data"]):
        yield OfferedModel(
            name=_name(each["id"]),
            parameters=_parameters(each["id"]),
            chats=_chats(each["id"]) and each.get("type", "llm") in ("llm", "vlm"),
        )


def openai_models(document: Any) -> Iterator[OfferedModel]:
    """Those of `/v1/models`; llama.cpp adds the number of parameters."""
    for each in _entries(document["data"]):
        meta = cast("Mapping[str, Any]", each.get("meta") or {})
        counted = meta.get("n_params")
        is_count = isinstance(counted, int | float) and not isinstance(counted, bool)
        yield OfferedModel(
            name=_name(each["id"]),
            parameters=float(cast("float", counted)) if is_count else _parameters(each["id"]),
            chats=_chats(each["id"]),
        )


OLLAMA = OwnServer("Ollama", "127.0.0.1:11434", (("/api/tags", ollama_models),))
LM_STUDIO = OwnServer(
    "LM Studio", "127.0.0.1:1234", (("/api/v0/models", lm_studio_models), ("/v1/models", openai_models))
)
LLAMA_CPP = OwnServer("llama.cpp", "127.0.0.1:8080", (("/v1/models", openai_models),))
OWN_SERVERS = (OLLAMA, LM_STUDIO, LLAMA_CPP)
"""In the order in which they are preferred."""


def _entries(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in cast("list[object]", value)):
        raise TypeError("not a list of models")
    return cast("list[dict[str, Any]]", value)


def _name(value: Any) -> str:
    """The name of a model, which is shown in a terminal and sent back."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= MAX_NAME_CHARS:
        raise TypeError("not a name")
    return value


def _parameters(text: str) -> float:
    """`7.6B`, `137M`, and the first such number in a name, as in `qwen3-30b-a3b` or `mixtral-8x7b`."""
    found = _COUNT.search(text[:MAX_NAME_CHARS])
    return 0.0 if found is None else int(found[1] or 1) * float(found[2]) * _UNITS[found[3].lower()]


def _chats(name: str) -> bool:
    return not _NO_CHAT.search(name) and (not _BASE.search(name) or bool(_INSTRUCT.search(name)))


# -- asking


async def find_models(servers: Sequence[OwnServer] | None = None, timeout: float = TIMEOUT) -> tuple[ServerReport, ...]:
    """What each server offers, in their order. All are asked at once, and none for longer than `timeout` seconds."""
    servers = OWN_SERVERS if servers is None else servers
    reports: dict[str, ServerReport] = {}

    async def ask(server: OwnServer) -> None:
        reports[server.name] = await _report(server, timeout)

    async with trio.open_nursery() as nursery:
        for each in servers:
            nursery.start_soon(ask, each)
    return tuple(reports[each.name] for each in servers)


async def _report(server: OwnServer, timeout: float) -> ServerReport:
    problem = f"{server.address} took longer than {timeout:g} s to answer"
    with trio.move_on_after(timeout):
        for path, read in server.lists:
            try:
                document = await get_json(f"http://{server.address}{path}")
                return ServerReport(server=server, models=tuple(read(document)))
            except NotThere:
                problem = f"{server.address} answers, but not as {server.name} does"
            except Unanswered as error:
                return ServerReport(server=server, problem=f"{server.address} {error}")
            except (KeyError, TypeError, AttributeError, OverflowError, ValueError):
                return ServerReport(server=server, problem=f"{server.address} answers, but not as {server.name} does")
    return ServerReport(server=server, problem=problem)


class Unanswered(Exception):
    """There is no answer, for the reason in the message, which quotes nothing of the server."""


class NotThere(Unanswered):
    """The server has no such path."""


class Silent(Unanswered):
    """Nothing listens there."""


async def get_json(url: str, headers: Mapping[str, str] | None = None) -> Any:
    """The JSON at a URL of this machine. Raises `Unanswered`."""
    try:
        async with (
            httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None, headers=headers) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code in (404, 405):
                raise NotThere("has no such path")
            if answer.status_code != 200:
                raise Unanswered(f"answers with HTTP {answer.status_code}")
            body = bytearray()
            received = answer.aiter_raw()
            try:
                async for piece in received:
                    body += piece
                    if len(body) > MAX_BYTES:
                        raise Unanswered("answers with too much")
            finally:
                await stop_reading(received)
            return orjson.loads(bytes(body))
    except httpx2.ConnectError:
        raise Silent("does not answer") from None
    except (httpx2.HTTPError, orjson.JSONDecodeError):
        reason = "answers with something else"
    raise Unanswered(reason)


# -- choosing


def best(reports: Iterable[ServerReport]) -> tuple[OwnServer, OfferedModel] | None:
    """The largest model for conversations of the first server that has one; None if there is none."""
    for report in reports:
        suitable = [each for each in report.models if each.chats and not each.remote]
        if suitable:
            return report.server, max(suitable, key=lambda each: each.parameters)
    return None
