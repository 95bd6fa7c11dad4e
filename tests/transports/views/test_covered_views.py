"""Every view that settings name shows covered text, and no other does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from footlights import TurnFinal, open_stage
from footlights.params import SessionParams, TurnParams
from footlights.redaction import numbers
from footlights.redaction.secret_filter import SecretFilter
from footlights.testing import payloads
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.config.config import load_config
from footlights_transports.config.source import ConfigError
from footlights_transports.config.views import VIEWS
from footlights_transports.views.base.view import Mount, View, run_views

if TYPE_CHECKING:
    from pathlib import Path

    import trio

_USER = User(None)
KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
BLOTS = "*" * len(KEY)


def config_of(folder: Path, lines: str) -> Any:
    file = folder / "game.toml"
    file.write_text(f"[redaction]\n{lines}\n")
    return load_config(file)


@pytest.mark.parametrize("view", VIEWS)
def test_settings_cover_each_view(tmp_path: Path, view: type[View]) -> None:
    config = config_of(tmp_path, f'views = ["{view.name()}"]')
    assert config.cast.output_filter is not None
    assert [type(each) for each in config.views if each.output_filter is config.cast.output_filter] == [view]
    assert config_of(tmp_path, "").cast.output_filter is None


def test_a_view_that_is_none_and_a_pattern_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="names nativ, which is no view; there are: native"):
        config_of(tmp_path, 'views = ["nativ"]')
    with pytest.raises(ConfigError, match=r"redaction\.patterns cannot be used: number 1"):
        config_of(tmp_path, 'views = ["native"]\npatterns = ["("]')


def test_a_host_adds_patterns_and_fields(tmp_path: Path) -> None:
    config = config_of(tmp_path, "views = [\"native\"]\npatterns = ['room \\d+']\nfields = ['maiden name']")
    text = "room 7, maiden name: Xyz"
    assert config.cast.output_filter.find(text, ended=True).spans == [(0, 6), (21, 24)]


def test_what_cannot_be_found_without_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(numbers, "find_spec", lambda _: None)
    with caplog.at_level(logging.WARNING):
        config_of(tmp_path, 'views = ["native"]')
    assert "phone numbers in national notation and national ids without a label; install the extra" in caplog.text


class Seen(View):
    """A view that keeps what it gets."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.access: SessionAccess | None = None

    def mount(self, access: SessionAccess) -> Mount:
        self.access = access
        return Mount(view=self, turn_begun=lambda _session, _turn, said: self.words.append(said))


async def test_all_that_a_covered_view_can_subscribe_to_is_covered(nursery: trio.Nursery) -> None:
    cast = evolve(standard_cast(ScriptedModel(lambda _: [Say(f"It is {KEY}.")])), output_filter=SecretFilter())
    covered, plain = Seen(), Seen()
    covered.output_filter = cast.output_filter
    async with open_stage(cast) as stage:
        access = SessionAccess(stage)
        await nursery.start(run_views, access, [covered, plain])
        for view, secret in ((covered, BLOTS), (plain, KEY)):
            assert view.access is not None
            session = view.access.start(_USER, SessionParams(session_id=secret[:9].strip("*") or "s"))
            name = session.session_id
            for stream in (
                session.subscribe(),
                view.access.session(_USER, name).subscribe(),
                view.access.subscribe(_USER, name, {}, ()),
            ):
                async with stream:
                    turn_id = view.access.begin_turn(_USER, name, f"Is it {KEY}?", TurnParams())
                    events = [event async for event in stream.until_commit(turn_id)]
                assert {each.text for each in payloads(events, TurnFinal)} == {f"It is {secret}."}
        assert {said[6:-1] for said in covered.words} == {BLOTS}
        assert {said[6:-1] for said in plain.words} == {KEY}
        nursery.cancel_scope.cancel()
