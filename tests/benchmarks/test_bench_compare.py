"""Comparison of two results: ratios of figures, and intervals for scenarios."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from footlights_bench.compare import compared
from footlights_bench.lib.figure_file import UnreadableResult, read_figures
from footlights_bench.lib.figures import Aim, Figure
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.report import Report
from footlights_transports.cli.commands import app
from tests.benchmarks.test_bench_scenario_report import MET, found

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.lib.figures import Unit

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


def write(folder: Path, name: str, *figures: Figure, bench: str = "core", quick: bool = False) -> Path:
    file = folder / name
    file.write_text(json.dumps(Report(bench, quick, this_machine(), figures).to_json()), encoding="utf-8")
    return file


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    figures = [figure("hot", 1.0, "x", Aim("at least", 2.0), min=0.5, max=1.5), figure("cold", 3.0)]
    read = read_figures(write(tmp_path, "a.json", *figures))
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


def test_a_comparison_of_figures_shows_ratios_and_no_intervals(tmp_path: Path) -> None:
    aim = Aim("at least", 2.0)
    before = write(
        tmp_path,
        "a.json",
        figure("moved", 1.0, "x", aim, min=0.9, max=1.1),
        figure("wavered", 1.0, "x", aim, min=0.5, max=3.0),
        figure("fell", 100.0, "µs", Aim("below", 150)),
        figure("was nothing", 0.0),
        figure("gone", 5.0),
    )
    after = write(
        tmp_path,
        "b.json",
        figure("moved", 3.0, "x", aim, min=2.9, max=3.1),
        figure("wavered", 1.5, "x", aim, min=1.0, max=2.0),
        figure("fell", 200.0, "µs", Aim("below", 150)),
        figure("was nothing", 2.0),
        figure("new", 7.0),
    )
    told = compared(before, after)
    lines = [line.split() for line in told.splitlines()]
    assert lines[:8] == [
        ["before", "after", "ratio", "laps", "aim"],
        ["tea"],
        ["moved", "1.00", "x", "3.00", "x", "3.00x", "apart", "now", "met"],
        ["wavered", "1.00", "x", "1.50", "x", "1.50x", "overlap", "MISSED"],
        ["fell", "100", "µs", "200", "µs", "2.00x", "now", "MISSED"],
        ["was", "nothing", "0", "µs", "2", "µs"],
        ["new", "7", "µs", "only", "after"],
        ["only", "before:", "tea:", "gone"],
    ]
    assert "no confidence intervals" in told
    assert "quick" not in told
    assert "different" not in told


def test_laps_that_do_not_overlap_are_apart_in_either_direction(tmp_path: Path) -> None:
    low = write(tmp_path, "a.json", figure("ratio", 1.0, "x", min=0.9, max=1.1))
    high = write(tmp_path, "b.json", figure("ratio", 3.0, "x", min=2.9, max=3.1))
    assert "apart" in compared(low, high).splitlines()[2]
    assert "apart" in compared(high, low).splitlines()[2]
    assert "overlap" in compared(high, high).splitlines()[2]


def test_a_comparison_names_different_benchmarks_and_quick_runs(tmp_path: Path) -> None:
    core, wire = write(tmp_path, "a.json", figure("a", 1.0)), write(tmp_path, "b.json", bench="wire", quick=True)
    told = compared(core, wire)
    assert told.startswith("These are different benchmarks: core and wire.")
    assert "a quick run" in told


def test_a_scenario_is_compared_only_with_a_scenario(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps(found(MET).to_json()), encoding="utf-8")
    assert "difference (95 %)" in compared(scenario, scenario)
    with pytest.raises(UnreadableResult, match="different kinds"):
        compared(scenario, write(tmp_path, "core.json"))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"bench": "core", "figures": [{}]}', '{"bench": "peers"}'])
def test_a_file_that_no_benchmark_wrote_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableResult, match=r"a\.json"):
        compared(file, file)


def test_the_command_prints_the_comparison(tmp_path: Path) -> None:
    files = [str(write(tmp_path, name, figure("a", 1.0))) for name in ("a.json", "b.json")]
    answer = CliRunner().invoke(app, ["bench", "compare", *files])
    assert answer.exit_code == 0
    assert "1.00x" in answer.output


def test_a_file_that_cannot_be_read_exits_with_2(tmp_path: Path) -> None:
    nothing = str(tmp_path / "nothing.json")
    answer = CliRunner().invoke(app, ["bench", "compare", nothing, nothing])
    assert answer.exit_code == 2
    assert "cannot be read" in answer.output


def test_bench_without_a_command_prints_its_help() -> None:
    assert "compare" in CliRunner().invoke(app, ["bench"]).output
