"""Scenario files: every setting is read, and every problem is reported with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights_bench.scenario.definition import Arrivals, LedgerKind, Load, Metric, Share, Target, settings_of
from footlights_bench.scenario.files import UnknownScenario, find_scenario, read_scenario, shipped
from footlights_transports.config.schema import names
from footlights_transports.config.source import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """\
about = "All of it."
baseline_turns = 5

[load]
sessions = 3
turns_per_second = 1.5
arrivals = "bursts"
burst = 2
duration = 10
warm_up = 1
patience = 2.5
seed = 7

[turn]
says = "Well?"
model = "smollm2"
tokens = 4
pace = 0.5
load_seconds = 1
tool_calls = 8
tool_seconds = 0.1
ledger = "memory"

[trouble]
cancel_share = 0.5
cancel_after = 1
cut_share = 1
cut_after = 2
stalled_clients = 1
stall_seconds = 3

[targets.one]
metric = "cancel"
percentile = 99.9
at_most_ms = 20

[targets.two]
metric = "first_token"
percentile = 50
at_most_ratio = 1.5
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


def wrong_with(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        read_scenario(written(folder, text))
    return [line.removeprefix(f"{folder}/") for line in str(refused.value).splitlines()]


def test_every_setting_is_read(tmp_path: Path) -> None:
    scenario = read_scenario(written(tmp_path, WHOLE))
    load, turn, trouble = scenario.load, scenario.turn, scenario.trouble
    assert (scenario.name, scenario.about, scenario.baseline_turns) == ("mine", "All of it.", 5)
    assert (load.sessions, load.turns_per_second, load.arrivals, load.burst) == (3, 1.5, Arrivals.BURSTS, 2)
    assert (load.duration, load.warm_up, load.patience, load.seed) == (10, 1, 2.5, 7)
    assert (turn.says[0].text, turn.model, turn.tokens, turn.pace, turn.load_seconds) == ("Well?", "smollm2", 4, 0.5, 1)
    assert (turn.tool_calls, turn.tool_seconds, turn.ledger) == (8, 0.1, LedgerKind.MEMORY)
    assert (trouble.cancel_share, trouble.cancel_after, trouble.cut_share, trouble.cut_after) == (0.5, 1, 1, 2)
    assert (trouble.stalled_clients, trouble.stall_seconds) == (1, 3)
    assert scenario.targets == [
        Target(name="one", metric=Metric.CANCEL, percentile=99.9, at_most_ms=20),
        Target(name="two", metric=Metric.FIRST_TOKEN, percentile=50, at_most_ratio=1.5),
    ]
    assert scenario.wants_baseline


def test_most_settings_have_defaults(tmp_path: Path) -> None:
    scenario = read_scenario(written(tmp_path, "[load]\nsessions = 1\nturns_per_second = 1\nduration = 1\n"))
    assert scenario.load.arrivals is Arrivals.POISSON
    assert scenario.targets == []
    assert not scenario.wants_baseline


def test_every_problem_is_reported_with_its_line(tmp_path: Path) -> None:
    text = """\
[load]
sessions = 0
turns_per_second = 1
arrivals = "sometimes"
duraton = 3

[turn]
tool_calls = 9

[trouble]
cancel_share = 1.5

[targets.fast]
metric = "speed"
percentile = 0
"""
    known = ", ".join(names(settings_of(Load)))
    assert wrong_with(tmp_path, text) == [
        "mine.toml:1: load needs duration, a number of seconds, more than 0.",
        "mine.toml:2: load.sessions must be a whole number from 1 up.",
        "mine.toml:4: load.arrivals must be one of constant, poisson, bursts.",
        f"mine.toml:5: load.duraton is not a setting. Did you mean duration? There are: {known}.",
        "mine.toml:8: turn.tool_calls must be a whole number from 0 to 8.",
        "mine.toml:11: trouble.cancel_share must be a number from 0 to 1.",
        f"mine.toml:14: targets.fast.metric must be one of {', '.join([*Metric, *Share])}.",
        "mine.toml:15: targets.fast.percentile must be a number, more than 0 and at most 100.",
    ]


@pytest.mark.parametrize("bounds", ["", "at_most_ms = 1\nat_most_ratio = 2\n"])
def test_a_target_has_one_bound(tmp_path: Path, bounds: str) -> None:
    text = f'{WHOLE}\n[targets.three]\nmetric = "final"\npercentile = 50\n{bounds}'
    assert wrong_with(tmp_path, text) == [
        "mine.toml:42: targets.three needs one bound: at_most_ms or at_most_ratio.",
    ]


def test_a_target_for_cancels_needs_a_share_of_cancels(tmp_path: Path) -> None:
    assert wrong_with(tmp_path, WHOLE.replace("cancel_share = 0.5\n", "")) == [
        "mine.toml:31: targets.one is about canceled turns, and trouble.cancel_share is 0.",
    ]


def test_a_load_with_too_many_turns_or_a_useless_burst_is_refused(tmp_path: Path) -> None:
    text = "[load]\nsessions = 1\nturns_per_second = 1e300\nduration = 1\nburst = 5\n"
    assert wrong_with(tmp_path, text) == [
        "mine.toml:1: load has more than 10,000,000 turns.",
        "mine.toml:5: load.burst does nothing unless arrivals is bursts.",
    ]


def test_a_baseline_has_at_least_two_turns(tmp_path: Path) -> None:
    assert wrong_with(tmp_path, WHOLE.replace("baseline_turns = 5", "baseline_turns = 1")) == [
        "mine.toml:2: baseline_turns must be a whole number from 2 up.",
    ]


def test_invalid_toml_is_reported(tmp_path: Path) -> None:
    assert "mine.toml:1: This is not TOML" in wrong_with(tmp_path, "load\n")[0]


def test_a_scenario_is_found_by_its_name_or_its_path(tmp_path: Path) -> None:
    file = written(tmp_path, WHOLE)
    assert find_scenario(str(file)) == file
    assert find_scenario("tavern").name == "tavern.toml"
    with pytest.raises(UnknownScenario, match="cancel-storm, cold-start, raid, slow-clients, soak, tavern"):
        find_scenario("nothing")


@pytest.mark.parametrize("name", shipped())
def test_every_included_scenario_can_be_read(name: str) -> None:
    scenario = read_scenario(find_scenario(name))
    assert scenario.about
    assert scenario.targets
    assert scenario.quick().load.duration <= 1.0
