"""World names: what may be one, and where it stands in an address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.errors import InvalidCommand
from footlights_transports.errors import InvalidWorld
from footlights_transports.worlds.names import MAIN, is_world_name, matching, split_address


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/v1", (MAIN, "/v1")),
        ("/", (MAIN, "/")),
        ("/w", (MAIN, "/w")),
        ("/world/v1", (MAIN, "/world/v1")),
        ("/w/harbour/v1/sessions", ("harbour", "/v1/sessions")),
        ("/w/main/v1", (MAIN, "/v1")),
        ("/w/a-1_b/w/x/v1", ("a-1_b", "/w/x/v1")),
        ("/w/harbour", ("harbour", "")),
    ],
)
def test_an_address_names_a_world_or_the_main_one(path: str, parts: tuple[str, str]) -> None:
    assert split_address(path) == parts


@pytest.mark.parametrize("name", ["", "Harbour", "-a", ".", "..", "a.b", "ä", "a" * 64, "a b", "%2e%2e", "a\0", "_x"])
def test_a_bad_name_gets_one_sentence_that_does_not_repeat_it(name: str) -> None:
    with pytest.raises(InvalidWorld) as refused:
        split_address(f"/w/{name}/v1")
    assert refused.value.code == "invalid_world"
    assert str(refused.value) == (
        "The name of a world has 1 to 63 lower-case letters, digits, _ or -, and begins with a letter or a digit."
    )
    assert isinstance(refused.value, InvalidCommand)


@given(st.text())
def test_no_name_of_a_world_leads_out_of_its_folder(name: str) -> None:
    if is_world_name(name):
        assert not set(name) & set("/\\.:\0 ~$*?")
        assert name == name.lower() == name.strip()


def test_the_template_that_fits_best_makes_a_world() -> None:
    patterns = ["*", "arena-*", "arena-vip-*", "arena-1"]
    assert [matching(each, patterns) for each in ("arena-1", "arena-2", "arena-vip-2", "inn")] == [
        "arena-1",
        "arena-*",
        "arena-vip-*",
        "*",
    ]
    assert matching("inn", ["arena-*"]) is None
