"""Figures of the suites and of the race, read back from their files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.result_file import UnreadableResult
from suites.__main__ import main
from suites.lib.figure_file import read_figures
from suites.lib.figures import Aim, Figure
from suites.lib.report import Report

if TYPE_CHECKING:
    from pathlib import Path

    from suites.lib.figures import Unit

RACE = {
    "bench": "peers",
    "quick": False,
    "machine": {"cpus": 2},
    "verdicts": [{"aim": "turns/s", "rival": "Them", "value": 4.0, "bound": 5.0, "met": False}],
    "results": [
        {
            "name": name,
            "turns": {
                manner: {
                    "turns_per_second": {"median": 9.0, "low": 8.0, "high": 10.0},
                    "events_per_second": {"median": 900.0, "low": 800.0, "high": 1000.0},
                    "first_event": {"p50": 5.0, "p99": 6.0},
                }
                for manner in ("yielding", "flooding")
            },
            "cancel": {"told": {"p50": 1.0, "p99": 2.0}, "stopped": {"p50": 3.0, "p99": 4.0}},
            "weight": weight,
        }
        for name, weight in (("Us", {"allocated": 1024, "resident": 4096}), ("Them", None))
    ],
}


def figure(name: str, value: float, unit: Unit = "µs", aim: Aim | None = None, **spread: float) -> Figure:
    return Figure("tea", name, value, unit, aim, spread)


def write(file: Path, *figures: Figure) -> Path:
    file.write_text(json.dumps(Report("core", False, this_machine(), figures).to_json()), encoding="utf-8")
    return file


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    figures = [figure("hot", 1.0, "x", Aim("at least", 2.0), min=0.5, max=1.5), figure("cold", 3.0)]
    read = read_figures(write(tmp_path / "a.json", *figures))
    assert (read.bench, read.quick, list(read.figures)) == ("core", False, figures)
    assert read.machine["python"] == this_machine().python


def test_a_race_is_read_as_figures(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    file.write_text(json.dumps(RACE), encoding="utf-8")
    figures = read_figures(file).figures
    assert figures[0] == Figure("better than the best peer", "turns/s", 4.0, "x", Aim("at least", 5.0))
    assert [each.name for each in figures if each.subject == "turns, yielding model"] == ["Us", "Them"]
    assert len(figures) == 1 + 2 * 3 * 2 + 2 * 2 + 1


def test_a_race_has_figures_for_everything_that_it_measures(tmp_path: Path) -> None:
    file = tmp_path / "race.json"
    file.write_text(json.dumps(RACE), encoding="utf-8")
    ours = {each.subject: each for each in read_figures(file).figures if each.name == "Us"}
    for manner in ("yielding", "flooding"):
        assert (ours[f"turns, {manner} model"].value, ours[f"turns, {manner} model"].unit) == (9.0, "turns/s")
        assert (ours[f"events, {manner} model"].value, ours[f"events, {manner} model"].unit) == (900.0, "events/s")
        first_event = ours[f"first event, {manner} model"]
        assert (first_event.value, first_event.unit, first_event.spread) == (5.0, "µs", {"p99": 6.0})
    assert ours["cancel until all has stopped"].value == 3.0
    memory = ours["memory of a player with an open turn"]
    assert (memory.value, memory.spread) == (1024, {"resident": 4096})


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"bench": "core", "figures": [{}]}', '{"bench": "peers"}'])
def test_a_file_that_no_benchmark_wrote_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableResult, match=r"a\.json"):
        read_figures(file)


def test_a_suite_with_an_unwritable_file_does_not_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["core", "--json", str(tmp_path / "nowhere/core.json")])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "cannot be written" in printed.err
