"""A model server on the other end of HTTP: one request, answered by a stream of events.

It promises that every failure is one of ours, and that no error says what was told or answered, or the key: the
errors of the HTTP library hold the request, and may quote what came back, so they are not even kept as causes.
Nothing is asked twice, except what a kept connection lost (`http_resend`); no redirect is followed, and no cookie is
kept. The key is read from the environment for each request.
"""

from __future__ import annotations

import logging
import os
import ssl
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import TYPE_CHECKING, NoReturn, TypeAlias
from urllib.parse import urlsplit

import httpx2
import orjson
import trio
from attrs import frozen

from footlights.errors import ModelError, RateLimitError, RegistrationError, StreamError
from footlights_actors.models.http_resend import trace, was_lost
from footlights_actors.models.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

Request: TypeAlias = "Mapping[str, object]"
Send: TypeAlias = "Callable[[str | None, Request], AbstractAsyncContextManager[httpx2.Response]]"
"""Sends a request with the key, if there is one; leaving it closes the request. It raises what the client raises."""
Sender: TypeAlias = "Callable[[httpx2.AsyncClient], Send]"
"""Says how requests are sent with a client. It is asked in a thread, where it may take its time."""

CONNECT_TIMEOUT = 10.0
MAX_STREAM_BYTES = 64_000_000
KEEP_CONNECTIONS = 32
REST_TIMEOUT = 0.2
"""How long the end of an answer that is complete already may take; only then can its connection be used again."""
LONGEST_WAIT = 86_400.0
"""Nobody is told to wait for longer than a day, whatever a server says."""

_getting_ready = trio.CapacityLimiter(1)
_OVERLOADED = 529
"""Not in any standard, but used for it by more than one vendor."""


_QUOTES_THE_SERVER = (".failed exception=", "receive_response_headers.complete ")


def _quotes_nothing(record: logging.LogRecord) -> bool:
    return not any(each in record.getMessage() for each in _QUOTES_THE_SERVER)


def _without_reason(record: logging.LogRecord) -> bool:
    """The last of what it says of a request is the reason beside the status, in the server's own words."""
    if isinstance(record.args, tuple) and record.msg.startswith("HTTP Request:"):
        record.args = (*record.args[:-1], "")
    return True


# What the library logs of headers and failures quotes what a server sent, which may be broken, or an echo.
logging.getLogger("httpcore2.http11").addFilter(_quotes_nothing)
logging.getLogger("httpx2").addFilter(_without_reason)


@frozen
class Server:
    """Where a model is served, and how it knows us."""

    base_url: str
    """What the paths of the interface are added to, without a slash at its end."""
    where: str
    """For people: its host, and its port if that is named."""
    loopback: bool
    """Whether it is this machine."""
    key_env: str | None
    """The environment variable that holds the key; None for a server that wants none."""

    def key(self) -> str | None:
        """The key, if there is one. Raises `ModelError` if it could not be sent in a header."""
        key = os.environ.get(self.key_env, "").strip() if self.key_env else ""
        if not key:
            return None
        if not (key.isascii() and key.isprintable()):
            raise ModelError(f"What ${self.key_env} holds cannot be a key.")
        return key


def server(base_url: str, key_env: str | None) -> Server:
    """Check an address. Keys do not belong into it."""
    try:
        httpx2.URL(base_url)
        url = urlsplit(base_url)
        host, port = url.hostname, url.port
    except (ValueError, httpx2.InvalidURL):
        raise RegistrationError("base_url is not an address.") from None
    if " " in base_url or not base_url.isprintable():  # which `urlsplit` quietly drops
        raise RegistrationError("base_url must have no blanks and no control characters.")
    if url.scheme not in {"http", "https"} or not host:
        raise RegistrationError("base_url must begin with http:// or https:// and a host.")
    if url.username is not None or url.query or url.fragment:
        raise RegistrationError("base_url must have no user, no query and no fragment: keys come from the environment.")
    where = f"[{host}]" if ":" in host else host
    return Server(base_url.rstrip("/"), where if port is None else f"{where}:{port}", _is_loopback(host), key_env)


@frozen
class _Client:
    http: httpx2.AsyncClient
    send: Send


class HttpStream:
    """The connections to one server. They are opened when they are needed, and kept until `close`."""

    def __init__(self, server: Server, sender: Sender, *, silence_timeout: float) -> None:
        if not silence_timeout > 0:
            raise RegistrationError("silence_timeout must be more than 0.")
        self._server = server
        self._sender = sender
        self._silence_timeout = silence_timeout
        self._ready: tuple[_Client, _Client] | None = None
        self._opening = trio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether a request could be sent at once."""
        return self._ready is not None

    async def open(self) -> None:
        """Get ready to send. Nothing is sent yet. Raises `ModelError` if the environment stands in the way."""
        await self._open()

    async def _open(self) -> tuple[_Client, _Client]:
        async with self._opening:
            if self._ready is None:
                # It reads certificates, and imports a hundred modules: a few tenths of a second.
                self._ready = await trio.to_thread.run_sync(self._get_ready, limiter=_getting_ready)
            return self._ready

    def _get_ready(self) -> tuple[_Client, _Client]:
        """A client that keeps connections, and one that opens a new one for each request."""
        try:
            certificates = self._certificates()
            return self._client(certificates, KEEP_CONNECTIONS), self._client(certificates, 0)
        except OSError:
            problem = "The certificates that the environment names cannot be read."
        except ImportError:
            problem = "The environment names a SOCKS proxy, for which the package socksio is missing."
        except (ValueError, httpx2.InvalidURL):  # it may quote the password of the proxy
            problem = "The environment names a proxy whose address makes no sense."
        raise ModelError(problem)

    def _certificates(self) -> ssl.SSLContext:
        """Those of the system, if they are needed."""
        is_needed = self._server.base_url.startswith("https:")
        return httpx2.create_ssl_context() if is_needed else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def _client(self, certificates: ssl.SSLContext, kept: int) -> _Client:
        client = httpx2.AsyncClient(
            verify=certificates,
            headers={"Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(self._silence_timeout, connect=CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=kept),
            event_hooks={"request": [trace], "response": [self._check]},
            follow_redirects=False,
            # A cookie would tie the sessions of different players together.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            # A proxy would be another machine.
            trust_env=not self._server.loopback,
        )
        return _Client(client, self._sender(client))

    async def close(self) -> None:
        """Close what is open."""
        ready, self._ready = self._ready, None
        for client in ready or ():
            await client.http.aclose()
        await trio.lowlevel.checkpoint()

    async def post(self, request: Request) -> AsyncGenerator[str, None]:
        """Send a request; give the data of each event of the answer. Closing it closes the request.

        Raises `ModelError` if there is no answer, `RateLimitError` if it should be asked later, `StreamError` if the
        answer breaks off, and `TimeoutError` if nothing comes for `silence_timeout` seconds.
        """
        key = self._server.key()
        answered = False
        try:
            async with self._sent(key, request) as response:
                answered = True
                size = 0
                reader = EventReader()
                received = response.aiter_raw()
                try:
                    async for piece in received:
                        size += len(piece)
                        if size > MAX_STREAM_BYTES:
                            raise StreamError("The model's answer is too long.")
                        for data in reader.feed(piece):
                            yield data
                    return
                finally:
                    await _stop_reading(received)
        except httpx2.HTTPError as error:
            failure = self._failure(error, answered=answered)
        except (UnicodeError, orjson.JSONEncodeError):  # the first holds all that would have been sent
            failure = ModelError("What the model would have to be told cannot be sent: it is no Unicode, or no JSON.")
        raise failure

    @asynccontextmanager
    async def _sent(self, key: str | None, request: Request) -> AsyncGenerator[httpx2.Response, None]:
        """The answer to a request, which is sent over a kept connection, or a new one if that has lost it."""
        kept, new = await self._open()
        response: httpx2.Response | None = None
        async with AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(kept.send(key, request))
            except httpx2.HTTPError as error:
                if not was_lost(error):
                    raise
            if response is None:
                response = await stack.enter_async_context(new.send(key, request))
            yield response

    async def _check(self, response: httpx2.Response) -> None:
        """The client asks this of every answer when its head has come: no more of a refusal is read."""
        where, status = self._server.where, response.status_code
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            self._raise_unauthorized(status)
        if status == HTTPStatus.NOT_FOUND:
            raise ModelError(f"{where} knows no such model, or no such address (HTTP 404).")
        if status in {HTTPStatus.TOO_MANY_REQUESTS, _OVERLOADED}:
            raise RateLimitError(f"{where} wants to be asked later (HTTP {status}).", retry_after(response.headers))
        if response.is_redirect:
            raise ModelError(f"{where} answered with a redirect (HTTP {status}), which is not followed.")
        if status != HTTPStatus.OK:
            raise ModelError(f"{where} refused or failed (HTTP {status}).")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelError(f"{where} compressed its answer, though it was asked not to.")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            raise ModelError(f"{where} did not answer with a stream of events.")

    def _raise_unauthorized(self, status: int) -> NoReturn:
        where, key_env = self._server.where, self._server.key_env
        if key_env is None:
            raise ModelError(f"{where} wants a key, and none is configured (HTTP {status}).")
        if self._server.key() is None:
            raise ModelError(f"{where} wants a key, and ${key_env} is not set (HTTP {status}).")
        raise ModelError(f"{where} refused the key in ${key_env} (HTTP {status}).")

    def _failure(self, error: httpx2.HTTPError, *, answered: bool) -> Exception:
        where = self._server.where
        match error:
            case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError() | httpx2.UnsupportedProtocol():
                return ModelError(f"{where} cannot be reached ({type(error).__name__}).")
            case httpx2.TimeoutException():
                return TimeoutError(f"{where} was silent for {self._silence_timeout:g} seconds.")
            case _ if answered:
                return StreamError(f"The answer of {where} broke off ({type(error).__name__}).")
            case _:
                return ModelError(f"{where} did not answer ({type(error).__name__}).")


def sends_json(url: str, headers: Callable[[str | None], Mapping[str, str]]) -> Sender:
    """For servers that need no library of their own. The headers may depend on the key."""

    def sender(client: httpx2.AsyncClient) -> Send:
        def send(key: str | None, request: Request) -> AbstractAsyncContextManager[httpx2.Response]:
            head = {**headers(key), "Content-Type": "application/json"}
            return client.stream("POST", url, content=orjson.dumps(request), headers=head)

        return send

    return sender


async def _stop_reading(pieces: AsyncIterator[object]) -> None:
    """The library's generators do not close each other; a cancelled read goes through all of them."""
    with trio.CancelScope() as scope, suppress(httpx2.HTTPError):
        scope.cancel()
        async for _ in pieces:
            pass


async def read_rest(stream: AsyncGenerator[str, None]) -> None:
    """Read what follows a complete answer, which should be nothing, so that its connection can be used again."""
    with trio.move_on_after(REST_TIMEOUT):
        async with aclosing(stream):
            try:
                async for _ in stream:
                    pass
            except (ModelError, TimeoutError):
                return  # the answer was complete before


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds to wait. A date is measured by the server's own clock, because ours may differ."""
    value = headers.get("retry-after", "").strip()
    if value.replace(".", "", 1).isdecimal() and value.isascii():
        return min(float(value), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(value)
        seconds = (at - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, seconds), LONGEST_WAIT)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
