"""Paths of WebSocket endpoints."""

from __future__ import annotations

import pytest

from footlights_transports.websocket.endpoint import Accepted, Endpoint, Visitor


def refuse(_: Visitor) -> Accepted:
    raise NotImplementedError


PERTURB = Endpoint("/perturb/{agent}", "kgent.v1", refuse)


def test_the_names_in_a_path_are_decoded() -> None:
    assert PERTURB.names_in("/perturb/kgent") == {"agent": "kgent"}
    assert PERTURB.names_in("/perturb/the%20muse") == {"agent": "the muse"}


def test_a_path_without_names_matches_itself_only() -> None:
    native = Endpoint("/v1", "footlights.v1", refuse)
    assert native.names_in("/v1") == {}
    assert native.names_in("/v1/") is None


@pytest.mark.parametrize(
    "path", ["", "/", "/perturb", "/perturb/", "perturb/kgent", "/v1", "/perturb/a/b", "/PERTURB/kgent"]
)
def test_any_other_path_is_not_the_endpoints(path: str) -> None:
    assert PERTURB.names_in(path) is None
