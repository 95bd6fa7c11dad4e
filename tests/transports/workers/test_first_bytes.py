"""First bytes of a request: they tell its world as soon as they can, whatever they are and however they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights_transports.workers.first_bytes import ENOUGH, is_for_the_server, world_in
from footlights_transports.worlds.names import MAIN, is_world_name


@pytest.mark.parametrize(
    ("first", "world"),
    [
        (b"GET /w/harbour/v1 HTTP/1.1\r\n", "harbour"),
        (b"POST /w/harbour/v1/ses", "harbour"),
        (b"GET /w/harbour ", "harbour"),
        (b"GET /w/harbour?batch=1 ", "harbour"),
        (b"\r\nGET /w/harbour/v1", "harbour"),
        (b"GET /v1", MAIN),
        (b"GET / ", MAIN),
        (b"GET /w", None),
        (b"GET /w/", None),
        (b"GET /w/har", None),
        (b"GET /w\r\n", MAIN),
        (b"GE", None),
        (b"", None),
        (b"GET http://host/w/harbour/v1 HTTP/1.1", MAIN),
        (b"GET /w/%68arbour/v1", MAIN),
        (b"GET /w/../v1", MAIN),
        (b"GET /w/" + b"a" * 63 + b"/", "a" * 63),
        (b"GET /w/" + b"a" * ENOUGH, MAIN),
        (b"\x16\x03\x01", MAIN),
        (b"get /w/harbour/", MAIN),
        (b"A" * ENOUGH, MAIN),
        (b"\n" * ENOUGH, MAIN),
    ],
)
def test_the_first_bytes_tell_the_world(first: bytes, world: str | None) -> None:
    assert world_in(first) == world


@given(st.binary(max_size=2 * ENOUGH))
def test_a_decision_is_made_in_time_and_never_changes(first: bytes) -> None:
    decided = [world_in(first[:length]) for length in range(len(first) + 1)]
    known = [each for each in decided if each is not None]
    assert len(set(known)) <= 1
    assert decided == [None] * (len(decided) - len(known)) + known
    assert len(known) == max(0, len(first) + 1 - decided.count(None))
    assert len(first) < ENOUGH or decided[ENOUGH] is not None
    assert all(is_world_name(each) for each in known)


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/livez", "/healthz"])
def test_probes_and_metrics_are_for_the_server(path: str) -> None:
    assert is_for_the_server(f"GET {path} HTTP/1.1\r\n".encode())
    assert is_for_the_server(f"HEAD {path}?x HTTP/1.1\r\n".encode())
    assert not is_for_the_server(f"GET /w/harbour{path} HTTP/1.1\r\n".encode())
    assert not is_for_the_server(f"POST {path} HTTP/1.1\r\n".encode())
    assert not is_for_the_server(f"GET {path}/more HTTP/1.1\r\n".encode())
