"""Raw cases of HTTP/1.1: requests that RFC 9112 and RFC 9110 allow or forbid, and the required answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.cases.case import Case, Outcome
from footlights_bench.attack.floods.http import H2_OPENING, NOT_ASCII, h2_frame, h2c_upgrade
from footlights_bench.attack.raw.http import ask, read_response, request
from footlights_bench.attack.raw.sockets import open_connection
from footlights_bench.attack.raw.websocket import handshake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from footlights_bench.attack.raw.http import Response
    from footlights_bench.attack.target import Target

_BAD = frozenset({400})
_CLIENT_ERRORS = range(400, 500)
_NOT_DONE = {*_CLIENT_ERRORS, 501}
_ODD_LENGTHS = {"negative": "-1", "signed": "+2", "hexadecimal": "0x2", "spaced": "2 2", "list": "2, 3"}
_SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: smuggled\r\n\r\n"
_CHUNKED = "Transfer-Encoding: chunked"
_JSON = "Content-Type: application/json"
TOO_LARGE = 300_000
"""More than the default of `wire.max_frame_bytes`."""
HUGE = 8_000_000
_LARGE_CHUNKS = (b"2710\r\n" + b"a" * 10_000 + b"\r\n") * 30 + b"0\r\n\r\n"
_QUICKLY = 2.0


def _post(target: Target, headers: Sequence[str], body: bytes, *, path: str = "/v1/sessions") -> bytes:
    return request(target.http, "POST", path, token=target.token, headers=[_JSON, *headers]) + body


def _answers(
    rule: str,
    make: Callable[[Target], bytes],
    statuses: Collection[int],
    *,
    closes: bool = False,
    announced: bool = True,
) -> Case:
    """The server answers the bytes once, with one of these statuses; then it closes the connection if `closes`."""

    async def check(target: Target) -> Outcome:
        async with open_connection(target.http) as connection:
            await connection.try_send(make(target))
            response = await read_response(connection)
            if response is None:
                return Outcome("closed without an answer" if connection.is_closed else "no answer", held=False)
            measured, held = f"status {response.status}", response.status in statuses
            if closes:
                closed = await connection.receive_until_closed(_QUICKLY)
                again = b"HTTP/1." in connection.buffer
                measured += ", closed" if closed else ", left open"
                measured += ", and the rest was answered as a request" if again else ""
                held = held and closed and not again
                if announced and not response.says_close:
                    measured, held = f"{measured}, without Connection: close", False
        return Outcome(measured, held)

    return Case(rule, check)


def _raw(text: str) -> Callable[[Target], bytes]:
    def make(target: Target) -> bytes:
        return text.replace("HOST", target.http.authority).encode("latin-1")

    return make


def _get(*lines: str, path: str = "/healthz") -> Callable[[Target], bytes]:
    return _raw("\r\n".join([f"GET {path} HTTP/1.1", "Host: HOST", *lines, "", ""]))


def _asks(method: str, path: str) -> Callable[[Target], bytes]:
    return lambda target: request(target.http, method, path, token=target.token)


def _shakes(changed: Mapping[str, str], body: bytes = b"") -> Callable[[Target], bytes]:
    return lambda target: handshake(target.http, target.token, changed=changed) + body


def _length(value: str) -> Callable[[Target], bytes]:
    return lambda target: _post(target, [f"Content-Length: {value}"], b"{}")


def _chunks(body: bytes, *more: str) -> Callable[[Target], bytes]:
    return lambda target: _post(target, [_CHUNKED, *more], body)


async def _large_body(target: Target, headers: Sequence[str], body: bytes) -> Outcome:
    """After a refusal the server either announces that it closes the connection, or goes on serving it."""
    async with open_connection(target.http) as connection, trio.open_nursery() as nursery:
        sent = trio.Event()

        async def send() -> None:
            await connection.try_send(_post(target, headers, body))
            sent.set()

        nursery.start_soon(send)
        response = await read_response(connection)
        if response is None:
            seen = Outcome("no answer", held=False)
        elif response.says_close:
            closed = await connection.receive_until_closed()
            seen = Outcome(f"status {response.status}, Connection: close", response.status == 413 and closed)
        else:
            await sent.wait()
            await connection.try_send(request(target.http, "GET", "/healthz"))
            again = await read_response(connection, seconds=_QUICKLY)
            lived = again is not None and again.status == 200
            state = "and goes on" if lived else "and is of no use without Connection: close"
            seen = Outcome(f"status {response.status}, {state}", response.status == 413 and lived)
        nursery.cancel_scope.cancel()
    return seen


def _refuses_large(headers: Sequence[str], body: bytes) -> Case:
    rule = "413; Connection: close if it is closed (9112 §9.6)"
    return Case(rule, partial(_large_body, headers=headers, body=body))


def _status(response: Response | None, expected: int) -> Outcome:
    if response is None:
        return Outcome("no answer", held=False)
    return Outcome(f"status {response.status}", response.status == expected)


async def _token_before_body(target: Target) -> Outcome:
    async with open_connection(target.http) as connection:
        head = request(target.http, "POST", "/v1/sessions", headers=[_JSON, "Content-Length: 1000"])
        await connection.send(head + b"{")
        response = await read_response(connection, seconds=_QUICKLY)
    return _status(response, 401)


async def _pipelined(target: Target) -> Outcome:
    async with open_connection(target.http) as connection:
        await connection.send(request(target.http, "GET", "/healthz") + request(target.http, "GET", "/nowhere-at-all"))
        answers = [await read_response(connection), await read_response(connection)]
    statuses = [None if answer is None else answer.status for answer in answers]
    # With tokens, a client without one gets 401 for any path.
    return Outcome(f"statuses {statuses}", statuses[0] == 200 and statuses[1] in (401, 404))


async def _head(target: Target) -> Outcome:
    async with open_connection(target.http) as connection:
        await connection.send(request(target.http, "HEAD", "/healthz") + request(target.http, "GET", "/healthz"))
        head = await read_response(connection, to_head=True)
        follows = await read_response(connection)
    statuses = [None if answer is None else answer.status for answer in (head, follows)]
    return Outcome(f"statuses {statuses}", statuses in ([200, 200], [405, 200]))


async def _continue(target: Target) -> Outcome:
    async with open_connection(target.http) as connection:
        await connection.send(_post(target, ["Content-Length: 2", "Expect: 100-continue"], b""))
        with trio.move_on_after(_QUICKLY):
            while b"\r\n\r\n" not in connection.buffer and await connection.receive():
                pass
        first = bytes(connection.buffer[:12])
        if first == b"HTTP/1.1 100":
            await connection.send(b"{}")
        response = await read_response(connection, seconds=_QUICKLY)
    status = None if response is None else response.status
    return Outcome(f"{first.decode('latin-1') or 'nothing'}, then {status}", status is not None)


def _nosniff(rule: str, method: str, path: str, *, with_token: bool, needs_token: bool = False) -> Case:
    async def check(target: Target) -> Outcome:
        response = await ask(target.http, method, path, token=target.token if with_token else None)
        if response is None:
            return Outcome("no answer", held=False)
        said = response.headers.get("x-content-type-options", "no X-Content-Type-Options")
        return Outcome(f"status {response.status}, {said}", said.lower() == "nosniff")

    return Case(rule, check, needs_token=needs_token)


def _no_h2(rule: str, make: Callable[[Target], bytes]) -> Case:
    """The answer is HTTP/1.1, and no HTTP/2 frame follows."""
    ping = h2_frame(0x6, b"12345678")

    async def check(target: Target) -> Outcome:
        async with open_connection(target.http) as connection:
            await connection.try_send(make(target) + ping)
            closed = await connection.receive_until_closed(_QUICKLY)
        answer = bytes(connection.buffer)
        spoken = b"12345678" in answer or h2_frame(0x4, flags=1) in answer or b"\x00\x00\x00\x04\x01" in answer
        switched = b" 101 " in answer[:20]
        first = answer[:12].decode("latin-1") if answer.startswith(b"HTTP/1.1") else f"{len(answer)} bytes"
        measured = f"{first}, {'HTTP/2 frames came back' if spoken or switched else 'no HTTP/2'}"
        return Outcome(f"{measured}, {'closed' if closed else 'left open'}", closed and not spoken and not switched)

    return Case(rule, check)


def _is_200(rule: str, path: str) -> Case:
    async def check(target: Target) -> Outcome:
        response = await ask(target.http, "GET", path)
        return _status(response, 200)

    return Case(rule, check)


_CASES: Mapping[str, Case] = {
    "length-and-chunked": _answers(
        "answered once, then closed (9112 §6.3)",
        lambda target: _post(target, ["Content-Length: 5", _CHUNKED], b"0\r\n\r\n" + _SMUGGLED),
        {*_BAD, 201},
        closes=True,
    ),
    "chunked-and-length": _answers(
        "answered once, then closed (9112 §6.3)",
        lambda target: _post(target, [_CHUNKED, "Content-Length: 50"], b"0\r\n\r\n" + _SMUGGLED),
        {*_BAD, 201},
        closes=True,
    ),
    "chunked-in-http-1.0": _answers(
        "answered, then closed (9112 §6.1)",
        lambda target: _chunks(b"0\r\n\r\n" + _SMUGGLED)(target).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        {*_BAD, 201, 501, 505},
        closes=True,
        announced=False,
    ),
    "chunked-twice": _answers(
        "400 or 501, then closed (9112 §6.1)", _chunks(b"0\r\n\r\n", _CHUNKED), {400, 501}, closes=True
    ),
    "unknown-coding": _answers(
        "400 or 501, then closed (9112 §6.1)",
        lambda target: _post(target, ["Transfer-Encoding: xchunked"], b"{}"),
        {400, 501},
        closes=True,
    ),
    "chunked-not-last": _answers(
        "400 or 501, then closed (9112 §6.3)",
        lambda target: _post(target, ["Transfer-Encoding: chunked, gzip"], b"{}"),
        {400, 501},
        closes=True,
    ),
    "two-lengths": _answers(
        "400, then closed (9112 §6.3)",
        lambda target: _post(target, ["Content-Length: 2", "Content-Length: 3"], b"{}"),
        _BAD,
        closes=True,
    ),
    **{
        f"length-{name}": _answers("400, then closed (9112 §6.3)", _length(value), _BAD, closes=True)
        for name, value in _ODD_LENGTHS.items()
    },
    "length-huge": _answers("400 or 413, then closed (9110 §8.6)", _length("9" * 40), {400, 413}, closes=True),
    "bad-chunk-size": _answers("400, then closed (9112 §7.1)", _chunks(b"zz\r\n{}\r\n0\r\n\r\n"), _BAD, closes=True),
    "negative-chunk-size": _answers(
        "400, then closed (9112 §7.1)", _chunks(b"-2\r\n{}\r\n0\r\n\r\n"), _BAD, closes=True
    ),
    "chunk-without-end": _answers("400, then closed (9112 §7.1)", _chunks(b"2\r\n{}xx0\r\n\r\n"), _BAD, closes=True),
    "endless-chunk-extension": _answers(
        "4xx, then closed (9112 §7.1.1)", _chunks(b"2;" + b"a" * 1_000_000), _CLIENT_ERRORS, closes=True
    ),
    "no-host": _answers("400 (9112 §3.2)", _raw("GET /healthz HTTP/1.1\r\n\r\n"), _BAD),
    "two-hosts": _answers("400 (9112 §3.2)", _get("Host: HOST"), _BAD),
    "space-before-colon": _answers("400 (9112 §5.1)", _get("X-Space : 1"), _BAD),
    "nul-in-a-header": _answers("400 (9110 §5.5)", _get("X-Nul: a\0b"), _BAD),
    "bare-cr-in-a-header": _answers("400, or taken for a space (9112 §2.2)", _get("X-Cr: a\rb"), {400, 200}),
    "folded-header": _answers("400, or unfolded (9112 §5.2)", _get("X-Fold: a", " b"), {400, 200}),
    "http-0.9": _answers("400 (9112 §3)", _raw("GET /healthz\r\n\r\n"), {400, 505}),
    "http-3.0": _answers("400 or 505 (9110 §15.6.6)", _raw("GET /healthz HTTP/3.0\r\nHost: HOST\r\n\r\n"), {400, 505}),
    "spaces-in-the-target": _answers("400 (9112 §3.2)", _get(path="/health z"), _BAD),
    "large-headers": _answers(
        "400 or 431, then closed (6585 §5)", _get("X-Large: " + "a" * 1_000_000), {400, 431}, closes=True
    ),
    "many-headers": _answers(
        "400 or 431, then closed (6585 §5)",
        _get(*[f"X-{number}: a" for number in range(20_000)]),
        {400, 431},
        closes=True,
    ),
    "long-target": _answers(
        "400, 414 or 431, then closed (9110 §15.5.15)", _get(path="/" + "a" * 1_000_000), {400, 414, 431}, closes=True
    ),
    "unknown-method": _answers("4xx or 501 (9110 §9.1)", _asks("DANCE", "/healthz"), _NOT_DONE),
    "trace": _answers("no echo: 4xx or 501 (9110 §9.3.8)", _asks("TRACE", "/healthz"), _NOT_DONE),
    "connect": _answers("4xx or 501 (9110 §9.3.6)", _asks("CONNECT", "127.0.0.1:22"), _NOT_DONE),
    "path-upwards": _answers("4xx (3986 §5.2.4)", _asks("GET", "/../../etc/passwd"), {400, 404}),
    "crlf-in-the-target": _answers(
        "4xx, and no header of the client's making", _asks("GET", "/%0d%0aX-Made:%20up"), {400, 404}
    ),
    **{
        f"not-ascii-in-{name.lower()}": _answers("4xx (9110 §5.5)", _shakes({name: value}), _CLIENT_ERRORS)
        for name, value in NOT_ASCII.items()
    },
    "websocket-handshake": _answers("4xx (docs)", _shakes({}), _CLIENT_ERRORS),
    "websocket-handshake-with-a-body": _answers(
        "4xx (docs)", _shakes({"Transfer-Encoding": "chunked"}, b"5\r\nhello\r\n0\r\n\r\n"), _CLIENT_ERRORS
    ),
    "pipelined": Case("answered in order (9112 §9.3.2)", _pipelined),
    "head": Case("no body (9110 §9.3.2)", _head),
    "expect-continue": Case("100 or a final status at once (9110 §10.1.1)", _continue),
    "large-body-declared": _refuses_large(headers=[f"Content-Length: {TOO_LARGE}"], body=b""),
    "large-body-sent": _refuses_large(headers=[f"Content-Length: {TOO_LARGE}"], body=b"a" * TOO_LARGE),
    "huge-body-sent": _refuses_large(headers=[f"Content-Length: {HUGE}"], body=b"a" * HUGE),
    "large-body-in-chunks": _refuses_large(headers=[_CHUNKED], body=_LARGE_CHUNKS),
    "token-before-body": Case("401 before the body has come", _token_before_body, needs_token=True),
    "h2-preface": _no_h2("no HTTP/2, then closed (9113 §3.4)", lambda _: H2_OPENING),
    "h2c-upgrade": _no_h2("no HTTP/2, then closed (9110 §7.8)", lambda target: h2c_upgrade(target.http)),
    **{
        f"nosniff-{name}": _nosniff(
            "X-Content-Type-Options: nosniff", method, path, with_token=with_token, needs_token=name == "401"
        )
        for name, (method, path, with_token) in {
            "healthz": ("GET", "/healthz", False),
            "world": ("GET", "/v1/world", True),
            "openapi": ("GET", "/v1/openapi.json", True),
            "script": ("GET", "/footlights.js", False),
            "metrics": ("GET", "/metrics", True),
            "401": ("GET", "/v1/world", False),
            "404": ("GET", "/nowhere", True),
            "405": ("PUT", "/v1/world", True),
        }.items()
    },
    "livez": _is_200("200 without a token", "/livez"),
    "readyz": _is_200("200 without a token", "/readyz"),
}

HTTP_CASES: Mapping[str, Case] = {f"http/{name}": case for name, case in _CASES.items()}
