"""HTTP stream: one request to a model server, answered by a stream of events.

Every failure is raised as an error of Footlights that contains neither prompt nor answer nor key: the errors of the
HTTP library hold the request and may quote the answer, so they are not even kept as causes. Requests are not retried,
except one that a kept connection lost (`http_resend`); redirects are not followed, and cookies are not kept. The key is
read from the environment for each request.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from logging import DEBUG
from typing import TYPE_CHECKING, NoReturn, TypeAlias
from urllib.parse import urlsplit

import orjson
import trio
from attrs import frozen

from footlights.extras import name_extra

# First, because the others import what it depends on.
try:
    import httpx2
except ModuleNotFoundError as missing:
    name_extra(missing)
    raise

from footlights.errors import (
    ExtraMissing,
    KeyMissing,
    KeyRefused,
    ModelError,
    ModelLoadFailed,
    ModelNotFound,
    ModelServerError,
    ModelUnreachable,
    PromptTooLarge,
    RateLimitError,
    RegistrationError,
    StreamError,
)
from footlights.failures import is_watched, tell_developer
from footlights_actors.models.http_resend import trace, was_lost
from footlights_actors.models.refusals import explanation, without_words_of
from footlights_actors.models.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

Request: TypeAlias = "Mapping[str, object]"
Send: TypeAlias = "Callable[[str | None, Request], AbstractAsyncContextManager[httpx2.Response]]"
"""Sends a request, with a key if there is one. Leaving the context closes the request. Raises the client's errors."""
Sender: TypeAlias = "Callable[[httpx2.AsyncClient], Send]"
"""Makes the `Send` of a client. Called in a thread, where it may block."""

CONNECT_TIMEOUT = 10.0
MAX_STREAM_BYTES = 64_000_000
KEEP_CONNECTIONS = 32
REST_TIMEOUT = 0.2
"""Seconds to wait for the end of the stream after a complete answer, so that the connection can be used again."""
LONGEST_WAIT = 86_400.0
"""Upper bound of `retry_after`: one day."""

MAX_REFUSAL_BYTES = 65_536
"""Most bytes to read of the body of a refusal."""

_REFUSALS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})
_ABOUT_CONTEXT = re.compile(rb"context[ _](length|size|window)|prompt is too long", re.IGNORECASE)
_preparing = trio.CapacityLimiter(1)
_OVERLOADED = 529
"""Not a standard status, but used by several vendors."""


log = logging.getLogger("footlights.models")

_QUOTES_THE_SERVER = (".failed exception=", "receive_response_headers.complete ")


def _quotes_nothing(record: logging.LogRecord) -> bool:
    return not any(each in record.getMessage() for each in _QUOTES_THE_SERVER)


def _without_reason(record: logging.LogRecord) -> bool:
    """Remove the last argument of the library's log message, the reason phrase, which the server chose."""
    if isinstance(record.args, tuple) and record.msg.startswith("HTTP Request:"):
        record.args = (*record.args[:-1], "")
    return True


def _filter_logs() -> None:
    """Filter log messages of the HTTP library about headers and failures, which quote text of the server."""
    logging.getLogger("httpcore2.http11").addFilter(_quotes_nothing)
    logging.getLogger("httpx2").addFilter(_without_reason)


@frozen
class Server:
    """Address of a model server, and the variable of its key."""

    base_url: str
    """The prefix of the API's paths, without a final slash."""
    where: str
    """Its host, and its port if given, for messages."""
    loopback: bool
    """Whether it is this machine."""
    key_env: str | None
    """The environment variable that holds the key; None for a server without a key."""

    def key(self) -> str | None:
        """The key, or None. Raises `KeyRefused` if it cannot be sent in a header."""
        key = os.environ.get(self.key_env, "").strip() if self.key_env else ""
        if not key:
            return None
        if not (key.isascii() and key.isprintable()):
            raise KeyRefused(sentence=f"The value of ${self.key_env} has characters that no key has.")
        return key


def server(base_url: str, key_env: str | None) -> Server:
    """The server at this address. Raises `RegistrationError` for an invalid address, or one with a key."""
    try:
        httpx2.URL(base_url)
        url = urlsplit(base_url)
        host, port = url.hostname, url.port
    except (ValueError, httpx2.InvalidURL):
        raise RegistrationError("base_url is not an address.") from None
    if " " in base_url or not base_url.isprintable():  # `urlsplit` silently drops some of these
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
    """The connections to one server. They are opened on demand, and kept until `close`."""

    def __init__(self, server: Server, sender: Sender, *, model: str, silence_timeout: float) -> None:
        if not silence_timeout > 0:
            raise RegistrationError("silence_timeout must be more than 0.")
        self._server = server
        self._sender = sender
        self._model = model
        self._silence_timeout = silence_timeout
        self._ready: tuple[_Client, _Client] | None = None
        self._opening = trio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the client is ready to send."""
        return self._ready is not None

    async def open(self) -> tuple[_Client, _Client]:
        """Prepare both clients without sending anything. Raises `ModelLoadFailed` for an invalid environment."""
        async with self._opening:
            if self._ready is None:
                # Reading certificates and importing a hundred modules takes a few tenths of a second.
                self._ready = await trio.to_thread.run_sync(self._prepare, limiter=_preparing)
            return self._ready

    def _prepare(self) -> tuple[_Client, _Client]:
        """A client that keeps connections, and one that opens a new connection for each request."""
        _filter_logs()
        try:
            certificates = self._certificates()
            return self._client(certificates, KEEP_CONNECTIONS), self._client(certificates, 0)
        except OSError:
            problem = ModelLoadFailed(sentence="The certificates that the environment names cannot be read.")
        except ImportError:
            problem = ExtraMissing(sentence="The environment names a SOCKS proxy: pip install socksio")
        except (ValueError, httpx2.InvalidURL):  # the message may quote the password of the proxy
            problem = ModelLoadFailed(sentence="The environment names a proxy with an invalid address.")
        raise problem

    def _certificates(self) -> ssl.SSLContext:
        """The system's certificates for HTTPS, none for HTTP."""
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
            # A cookie would link the sessions of different players.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            # No proxy for a loopback address, because a proxy may be another machine.
            trust_env=not self._server.loopback,
        )
        return _Client(client, self._sender(client))

    async def close(self) -> None:
        """Close all connections."""
        ready, self._ready = self._ready, None
        for client in ready or ():
            await client.http.aclose()
        await trio.lowlevel.checkpoint()

    async def post(self, request: Request) -> AsyncGenerator[str, None]:
        """Send a request, and yield the data of each event of the answer. Closing the generator closes the request.

        Raises `ModelError` if there is no answer, `RateLimitError` if the server limits requests, `StreamError` if the
        answer breaks off, and `TimeoutError` after `silence_timeout` seconds without data.
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
                            raise StreamError(sentence="The model's answer is too long.")
                        for data in reader.feed(piece):
                            yield data
                    return
                finally:
                    await stop_reading(received)
        except httpx2.HTTPError as error:
            failure = self._failure(error, answered=answered)
        except (UnicodeError, orjson.JSONEncodeError):  # the first holds the whole request
            failure = ModelError(sentence="The prompt cannot be sent: it is not valid Unicode, or not JSON.")
        raise failure

    @asynccontextmanager
    async def _sent(self, key: str | None, request: Request) -> AsyncGenerator[httpx2.Response, None]:
        """The answer to a request, sent over a kept connection, and again over a new one if that lost it."""
        kept, new = await self.open()
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
        """Response hook of the client: raises for an error status. Of its body, nothing gets into an error."""
        where, status = self._server.where, response.status_code
        body = b""
        if status in _REFUSALS or (status >= HTTPStatus.BAD_REQUEST and (is_watched() or log.isEnabledFor(DEBUG))):
            body = await _beginning(response)
            self._explain(response, body)
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            self._raise_unauthorized(status)
        if status == HTTPStatus.NOT_FOUND:
            raise ModelNotFound(sentence=f"{where} has no model {self._model}, or no such path (HTTP 404).")
        if status in {HTTPStatus.TOO_MANY_REQUESTS, _OVERLOADED}:
            sentence = f"{where} limits requests (HTTP {status})."
            raise RateLimitError(sentence=sentence, retry_after=retry_after(response.headers))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            sentence = f"{where} failed (HTTP {status})."
            raise ModelServerError(sentence=sentence, retry_after=retry_after(response.headers))
        if status in _REFUSALS and _ABOUT_CONTEXT.search(body):  # servers agree on no code for it
            raise PromptTooLarge(sentence=f"{where} says that the prompt exceeds its context window (HTTP {status}).")
        if response.is_redirect:
            raise ModelError(sentence=f"{where} answered with a redirect (HTTP {status}), which is not followed.")
        if status != HTTPStatus.OK:
            raise ModelError(sentence=f"{where} refused the request (HTTP {status}).")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ModelError(sentence=f"{where} compressed its answer, which the request did not accept.")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            raise ModelError(sentence=f"{where} did not answer with a stream of events.")

    def _explain(self, response: httpx2.Response, body: bytes) -> None:
        """Tell the developer what the server says about its refusal."""
        if told := explanation(body, self._server.key()):
            what = f"{self._server.where} answered with HTTP {response.status_code}, and said"
            tell_developer(log, what, ModelError(told))
            log.debug("%s: %s", what, without_words_of(response.request.content, told))

    def _raise_unauthorized(self, status: int) -> NoReturn:
        where, key_env = self._server.where, self._server.key_env
        if key_env is None:
            raise KeyMissing(sentence=f"{where} requires a key, and none is configured (HTTP {status}).")
        if self._server.key() is None:
            raise KeyMissing(sentence=f"{where} requires a key, and ${key_env} is not set (HTTP {status}).")
        raise KeyRefused(sentence=f"{where} refused the key in ${key_env} (HTTP {status}).")

    def _failure(self, error: httpx2.HTTPError, *, answered: bool) -> Exception:
        where = self._server.where
        match error:
            case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError() | httpx2.UnsupportedProtocol():
                return ModelUnreachable(sentence=f"{where} cannot be reached ({type(error).__name__}).")
            case httpx2.TimeoutException():
                return TimeoutError(f"{where} was silent for {self._silence_timeout:g} seconds.")
            case _ if answered:
                return StreamError(sentence=f"The answer of {where} broke off ({type(error).__name__}).")
            case _:
                return ModelUnreachable(sentence=f"{where} did not answer ({type(error).__name__}).")


def sends_json(url: str, headers: Callable[[str | None], Mapping[str, str]]) -> Sender:
    """A sender that posts JSON, for servers without an SDK. The headers may depend on the key."""

    def sender(client: httpx2.AsyncClient) -> Send:
        def send(key: str | None, request: Request) -> AbstractAsyncContextManager[httpx2.Response]:
            head = {**headers(key), "Content-Type": "application/json"}
            return client.stream("POST", url, content=orjson.dumps(request), headers=head)

        return send

    return sender


async def stop_reading(pieces: AsyncIterator[object]) -> None:
    """Close the library's nested generators, which do not close each other, by a cancelled read."""
    with trio.CancelScope() as scope, suppress(httpx2.HTTPError):
        scope.cancel()
        async for _ in pieces:
            pass


async def _beginning(response: httpx2.Response) -> bytes:
    """The beginning of a refusal's body, as far as it comes at once."""
    body = b""
    received = response.aiter_raw()
    try:
        with trio.move_on_after(REST_TIMEOUT):
            async for piece in received:
                body += piece
                if len(body) > MAX_REFUSAL_BYTES:
                    break
    finally:
        await stop_reading(received)
    return body[:MAX_REFUSAL_BYTES]


async def read_rest(stream: AsyncGenerator[str, None]) -> None:
    """Read to the end of the stream after a complete answer, so that the connection can be used again."""
    with trio.move_on_after(REST_TIMEOUT):
        async with aclosing(stream):
            try:
                async for _ in stream:
                    pass
            except (ModelError, TimeoutError):
                return  # the answer was complete before


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait, or None. A date is compared with the server's own clock, because ours may differ."""
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
