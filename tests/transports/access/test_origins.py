"""Web origins: pages of this machine may connect without tokens, others are refused, and the log names the setting."""

from __future__ import annotations

import pytest

from footlights_transports.access.policy import AccessPolicy
from footlights_transports.errors import Unauthorized
from tests.kit.peers import http_peer, ws_peer

TOKEN = "a-token-of-sixteen-or-more"

OF_THIS_MACHINE = [
    "http://localhost",
    "http://localhost:3000",
    "https://localhost:5173",
    "http://127.0.0.1:8000",
    "http://127.8.9.1",
    "http://[::1]:8000",
    "http://[::1]",
]
OF_ELSEWHERE = [
    "http://localhost.evil.example",
    "http://localhost.evil.example:3000",
    "http://127.0.0.1.evil.example",
    "http://evil.example",
    "http://evil.example:7601",
    "http://localhost@evil.example",
    "http://evil.example@localhost",
    "http://localhost:80@evil.example",
    "http://evil.example#localhost",
    "http://evil.example/localhost",
    "http://evil.example?localhost",
    "http://localhost/",
    "http://localhost:3000/page",
    "http://localhost:",
    "http://localhost:999999",
    "http://localhost:3000:3000",
    "http://localhost ",
    " http://localhost",
    "http://localhost http://evil.example",
    "http://localhost, http://evil.example",
    "http://localhost.",
    "http://evil.localhost",
    "http://notlocalhost",
    "http://LOCALHOST:3000",
    "HTTP://localhost:3000",
    "http://127.0.0.1\\@evil.example",
    "http://127.1",
    "http://127.0.0.256",
    "http://127.0.0.1.",
    "http://2130706433",
    "http://0x7f000001",
    "http://0.0.0.0:3000",
    "http://10.0.0.1",
    "http://[::]",
    "http://[::ffff:127.0.0.1]",
    "http://[::1",
    "http://::1",
    "http://[::1%25eth0]",
    "http://lоcalhost",  # noqa: RUF001 - a Cyrillic letter
    "file://localhost",
    "ftp://localhost",
    "chrome-extension://localhost",
    "localhost",
    "//localhost",
    "null",
    "",
    "*",
]


@pytest.mark.parametrize("origin", OF_THIS_MACHINE)
def test_without_tokens_pages_of_this_machine_may_connect(origin: str) -> None:
    AccessPolicy().check_origin(origin)
    AccessPolicy(origins=["https://inn.example"]).check_origin(origin)


@pytest.mark.parametrize("origin", OF_THIS_MACHINE)
def test_with_tokens_they_have_to_be_listed(origin: str) -> None:
    with pytest.raises(Unauthorized, match="list it in server"):
        AccessPolicy({"ann": TOKEN}).check_origin(origin)
    AccessPolicy({"ann": TOKEN}, origins=[origin]).check_origin(origin)


@pytest.mark.parametrize("origin", OF_ELSEWHERE)
def test_what_only_looks_like_this_machine_may_not_connect(origin: str) -> None:
    with pytest.raises(Unauthorized):
        AccessPolicy().check_origin(origin)


def test_a_page_that_is_a_file_is_told_what_to_do() -> None:
    with pytest.raises(Unauthorized, match="serve it by HTTP"):
        AccessPolicy().check_origin("null")


# -- on the wire


@pytest.mark.parametrize("origin", OF_THIS_MACHINE)
async def test_a_page_of_this_machine_plays_by_websocket(origin: str) -> None:
    async with ws_peer.open_house() as house, ws_peer.connect(house, headers={"Origin": origin}) as peer:
        await peer.start()


async def test_a_page_of_this_machine_plays_by_http_and_may_read_the_answers() -> None:
    async with http_peer.open_house() as house:
        for origin in OF_THIS_MACHINE:
            asked = await house.client.options("/v1/sessions", headers={"origin": origin})
            begun = await house.client.post("/v1/sessions", headers={"origin": origin})
            assert (asked.status_code, begun.status_code) == (204, 201)
            assert {each.headers["access-control-allow-origin"] for each in (asked, begun)} == {origin}
            assert "access-control-allow-credentials" not in begun.headers


async def test_a_rebound_name_is_refused_whatever_its_page_says() -> None:
    async with http_peer.open_house() as house:
        headers = {"host": "evil.example:7601", "origin": "http://localhost:7601"}
        refused = await house.client.post("/v1/sessions", headers=headers)
        assert http_peer.refused(refused) == (403, "unauthorized")
        assert "access-control-allow-origin" not in refused.headers


async def test_a_hostile_page_gets_nothing_by_http() -> None:
    async with http_peer.open_house() as house:
        for origin in OF_ELSEWHERE:
            if not origin.isascii() or origin != origin.strip():
                continue  # no such header can be sent
            for method in ("POST", "OPTIONS"):
                refused = await house.client.request(method, "/v1/sessions", headers={"origin": origin})
                assert refused.status_code == 403, origin
                assert "access-control-allow-origin" not in refused.headers
        assert house.stage.open_sessions == 0


# -- the log


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "footlights.incidents"]


async def test_a_refused_page_is_logged_once_with_the_setting(caplog: pytest.LogCaptureFixture) -> None:
    async with ws_peer.open_house() as house:
        for origin in ("https://game.example", "https://other.example"):
            request = ws_peer.HANDSHAKE.replace(b"\r\n\r\n", f"\r\nOrigin: {origin}\r\n\r\n".encode(), 1)
            assert await ws_peer.refusal(house, request) == (403, "unauthorized")
    assert logged(caplog) == [
        "ws_handshake_unauthorized: Pages from this origin may not connect: list it in server.origins."
    ]


async def test_a_refused_page_is_logged_for_http_too(caplog: pytest.LogCaptureFixture) -> None:
    async with http_peer.open_house() as house:
        for _ in range(3):
            await house.client.post("/v1/sessions", headers={"origin": "https://game.example:8443"})
    assert logged(caplog) == ["http_403: Pages from this origin may not connect: list it in server.origins."]


async def test_each_failed_handshake_is_logged_once_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async with ws_peer.open_house() as house:
        host = ws_peer.HANDSHAKE.replace(b"Host: localhost", b"Host: inn.example")
        path = ws_peer.HANDSHAKE.replace(b"/v1", b"/v2", 1)
        version = ws_peer.HANDSHAKE.replace(b"footlights.v1", b"chat")
        for request in (host, host, path, version):
            await ws_peer.refusal(house, request)
    host_line, *others = logged(caplog)
    assert host_line == (
        "ws_handshake_unauthorized: Without tokens this server answers only to localhost and loopback addresses: use "
        "one of them, or configure tokens (server.tokens_file)."
    )
    assert others == [
        "ws_handshake_invalid_command: Connect to /v1.",
        "ws_handshake_unsupported_version: Offer the subprotocol footlights.v1.",
    ]


async def test_a_refused_token_is_logged_without_the_token(caplog: pytest.LogCaptureFixture) -> None:
    async with ws_peer.open_house(policy=AccessPolicy({"ann": TOKEN})) as house:
        wrong = b"\r\nAuthorization: Bearer not-the-token-of-anybody\r\n\r\n"
        await ws_peer.refusal(house, ws_peer.HANDSHAKE.replace(b"\r\n\r\n", wrong, 1))
    (line,) = logged(caplog)
    assert line == (
        "ws_handshake_unauthorized: This token is not known here, or counts no more. "
        "Tokens are set by server.tokens_file or FOOTLIGHTS_TOKENS__NAME."
    )
