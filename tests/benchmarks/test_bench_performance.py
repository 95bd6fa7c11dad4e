"""Performance page: runs of the suites, kept results and generated tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import evolve, frozen

from footlights_actors.models.local.weights import KNOWN, WeightsNotFetched
from footlights_bench.lib.machine import this_machine
from footlights_bench.scenario.files import find_scenario, read_scenario
from suites.__main__ import SUITES as COMMANDS
from suites.lib.figures import Aim, Figure
from suites.lib.report import Report
from suites.performance import __main__ as performance
from suites.performance import run as performance_run
from suites.performance import suites as performance_suites
from suites.performance.page import EXPLAINED_BY, explanations, rendered, unexplained, unshown
from suites.performance.results import Results, Taken
from suites.performance.run import Worked, share_of_others, this_commit, worked
from suites.performance.suites import SUITES, Kind, Suite, why_not_here
from tests.benchmarks.test_bench_figures import RACE
from tests.benchmarks.test_bench_scenario_report import MET, MISSED, TWICE, found
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCS = ROOT / "docs"
PAGE = "# Performance\n\n<!-- measured: machine -->\n<!-- end -->\n<!-- measured: runs -->\n<!-- end -->\n"
TAKEN = Taken(at="2026-01-02T03:04:05+00:00", commit="abc1234", changed=False, seconds=61.4, others=0.02)
HIT = Figure("tea", "hot", 1.0, "x", Aim("at least", 0.5), {"min": 0.9, "max": 1.1})
BAD = Figure("tea", "a|b", 2_000, "µs", Aim("below", 1_000))


def place(name: str) -> str:
    return f"<!-- measured: {name} -->\n<!-- end -->\n"


def bench(name: str = "core") -> Suite:
    return Suite(name, Kind.BENCH, 10, 1)


def keep(results: Results, folder: Path, suite: Suite, *figures: Figure, quick: bool = False) -> None:
    file = folder / "result.json"
    report = Report(suite.name, quick, evolve(this_machine(), load_average=0.25, load_average_after=None), figures)
    file.write_text(json.dumps(report.to_json()), encoding="utf-8")
    results.keep(suite, file, TAKEN)


# -- the page that is committed


def test_the_tables_of_the_page_match_the_results() -> None:
    page = (DOCS / performance.PAGE).read_text(encoding="utf-8")
    told = rendered(page, Results(DOCS / performance.FOLDER))
    assert page == told, "run: python -m suites.performance --render-only"


def test_every_suite_has_a_section_on_the_page() -> None:
    assert unshown((DOCS / performance.PAGE).read_text(encoding="utf-8")) == []


def test_every_missed_aim_is_explained() -> None:
    page = (DOCS / performance.PAGE).read_text(encoding="utf-8")
    assert unexplained(page, Results(DOCS / performance.FOLDER)) == []


def test_every_explanation_belongs_to_an_aim() -> None:
    results = Results(DOCS / performance.FOLDER)
    measured = [each for suite in SUITES if (each := results.measured(suite)) is not None]
    aims = {f"{each.suite}: {line.subject}: {line.name}" for each in measured for line in each.lines if line.aim}
    known = {each.suite for each in measured}
    explained = explanations((DOCS / performance.PAGE).read_text(encoding="utf-8"))
    assert {name for name in explained if name.partition(":")[0] in known} <= aims
    assert {name.partition(":")[0] for name in explained} <= {suite.name for suite in SUITES}


def test_every_suite_can_be_started() -> None:
    assert {suite.name for suite in SUITES if suite.kind is Kind.BENCH} <= COMMANDS.keys()
    assert all(callable(import_module(f"suites.{name}.suite").run) for name in COMMANDS)
    for suite in SUITES:
        if suite.kind is Kind.SCENARIO:
            assert read_scenario(find_scenario(suite.name)).load.duration <= 60
    assert find_spec("footlights_transports.__main__") is not None
    assert (performance_suites.BENCHMARKS / "peers/race.py").exists()


# -- tables of the page


def test_a_suite_is_shown_with_its_aims_and_the_facts_of_its_run(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    keep(results, tmp_path, bench(), HIT, BAD, Figure("milk", "cold", 3, "µs"))
    told = rendered(PAGE + place("core"), results, [bench()])
    assert "| core | 2026-01-02 03:04 | abc1234 | 61 s | 0.25 | unknown | 2% | 1 of 2 |" in told
    assert f"python {this_machine().python}" in told
    assert "load_average" not in told
    assert "| tea | value | also | aim | met |" in told
    assert "| hot | 1.00 x | min 0.90, max 1.10 | ≥ 0.50 | yes |" in told
    assert "| a\\|b | 2,000 µs |  | < 1,000 | **NO** |" in told
    assert "| milk | value | also | aim | met |\n| --- | ---: | ---: | ---: | ---: |\n| cold | 3 µs |  |  |  |" in told
    assert "busy" not in told
    assert "quick" not in told


def test_rendering_a_page_twice_changes_nothing(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    keep(results, tmp_path, bench(), HIT)
    once = rendered(PAGE + place("core"), results, [bench()])
    assert rendered(once, results, [bench()]) == once


def test_a_quick_run_is_marked_and_not_judged(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    keep(results, tmp_path, bench(), BAD, Figure("tea", "cold", 3, "µs"), quick=True)
    told = rendered(PAGE + place("core"), results, [bench()])
    assert "measures nothing" in told
    assert "| < 1,000 | not judged |" in told
    assert "| core (quick) |" in told
    assert "| cold | 3 µs |  |  |  |" in told
    assert unexplained(told, results, [bench()]) == []


def test_a_busy_machine_and_changed_files_are_shown(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    keep(results, tmp_path, bench(), Figure("tea", "cold", 3, "µs"))
    results.keep(bench(), tmp_path / "result.json", evolve(TAKEN, others=0.5, changed=True, commit=None))
    told = rendered(PAGE + place("core"), results, [bench()])
    assert "other programs used 50% of its processors" in told
    assert "| unknown and changes |" in told
    assert "| none are set |" in told


def test_a_suite_without_a_result_shows_why(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    assert "Not measured." in rendered(place("core"), results, [bench()])
    results.note_trouble(bench(), evolve(TAKEN, trouble="it was raining"))
    told = rendered(PAGE + place("core"), results, [bench()])
    assert "Not measured.\n\nThe last attempt gave no result: it was raining." in told
    assert "Nothing was measured." in told


def test_an_old_result_keeps_its_date_after_a_failure(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    keep(results, tmp_path, bench(), HIT)
    results.note_trouble(bench(), evolve(TAKEN, at="2027-01-01T00:00:00+00:00", trouble="it was raining"))
    told = rendered(PAGE + place("core"), results, [bench()])
    assert "2026-01-02 03:04" in told
    assert "2027" not in told
    assert "it was raining" in told
    keep(results, tmp_path, bench(), HIT)
    assert "raining" not in rendered(PAGE + place("core"), results, [bench()])


def test_different_machines_are_listed_with_their_suites(tmp_path: Path) -> None:
    results = Results(tmp_path / "kept")
    suites = [bench("core"), bench("wire")]
    for suite in suites:
        keep(results, tmp_path, suite, HIT)
    assert "- core" not in rendered(PAGE, results, suites)
    file = tmp_path / "kept/wire.json"
    file.write_text(file.read_text(encoding="utf-8").replace(this_machine().trio, "0.99"), encoding="utf-8")
    told = rendered(PAGE, results, suites)
    assert "- core: " in told
    assert "- wire: " in told


def test_a_scenario_is_shown_with_its_targets(tmp_path: Path) -> None:
    suite, results = Suite("mine", Kind.SCENARIO, 1, 1), Results(tmp_path / "kept")
    file = tmp_path / "result.json"
    file.write_text(json.dumps(found(MET, MISSED, TWICE, alone=0.4).to_json()), encoding="utf-8")
    results.keep(suite, file, TAKEN)
    told = rendered(PAGE + place("mine"), results, [suite])
    assert "| 2 players, 1 turns/s | value | also | aim | met |" in told
    assert "| good: final p50 | 500 ms | 10 turns | ≤ 1,000 ms | yes |" in told
    assert "| bad: final max | 2,001 ms | 10 turns | ≤ 1,000 ms | **NO** |" in told
    assert "(2x alone) | yes |" in told
    assert "| final, p50 | 500 ms | p90 500, p99 2,001, max 2,001 |  |  |" in told
    assert unexplained("", results, [suite]) == ["mine: 2 players, 1 turns/s: bad: final max"]
    assert "timelines" not in (tmp_path / "kept/mine.json").read_text(encoding="utf-8")


def test_a_scenario_without_a_latency_is_shown_as_failed(tmp_path: Path) -> None:
    result = found(MET).to_json()
    result["verdicts"][0] |= {"measured_ms": None, "met": False}
    suite, results, file = Suite("mine", Kind.SCENARIO, 1, 1), Results(tmp_path / "kept"), tmp_path / "result.json"
    file.write_text(json.dumps(result), encoding="utf-8")
    results.keep(suite, file, TAKEN)
    assert "| good: final p50 | failed | 10 turns |" in rendered(place("mine"), results, [suite])


def test_a_race_is_shown_like_a_suite(tmp_path: Path) -> None:
    suite, results, file = Suite("peers", Kind.RACE, 1, 1), Results(tmp_path / "kept"), tmp_path / "result.json"
    file.write_text(json.dumps(RACE), encoding="utf-8")
    results.keep(suite, file, TAKEN)
    told = rendered(place("peers"), results, [suite])
    assert "| turns/s | 4.00 x |  | ≥ 5.00 | **NO** |" in told
    assert "| Us | 9 turns/s | min 8, max 10 |  |  |" in told


def test_a_mark_with_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        rendered(place("tea"), Results(tmp_path), [bench()])


# -- explanations


def test_an_explanation_has_the_full_name_of_the_aim_and_all_parts(tmp_path: Path) -> None:
    results, name = Results(tmp_path / "kept"), "core: tea: a|b"
    keep(results, tmp_path, bench(), BAD)
    assert unexplained(f"### `{name}`\n\nIt is slow.\n", results, [bench()]) == [name]
    whole = "\n\n".join(f"{part} Somewhere." for part in EXPLAINED_BY)
    for part in EXPLAINED_BY:
        assert unexplained(f"### `{name}`\n\n{whole.replace(part, '')}\n", results, [bench()]) == [name]
    assert unexplained(f"### `core: tea: else`\n\n{whole}\n", results, [bench()]) == [name]
    assert unexplained(f"### `{name}`\n\n{whole}\n\n## Next\n", results, [bench()]) == []


def test_consecutive_headings_share_an_explanation() -> None:
    page = "### `a`\n\n### `b`\n\nBecause.\n\n### `c`\n\nOtherwise.\n\n## End\n\nMore.\n"
    assert explanations(page) == {"a": "Because.", "b": "Because.", "c": "Otherwise."}


# -- measuring


@frozen
class Played(Suite):
    """A suite that is a few lines of Python, with the file for its result in `sys.argv[1]`."""

    program: str = ""

    def command(self, result: Path, *, quick: bool) -> Sequence[str]:
        return (sys.executable, "-c", self.program, str(result), str(quick))


def writes(name: str, *, quick: bool = False, exit_code: int = 0) -> Played:
    text = json.dumps(Report(name, quick, this_machine(), [HIT]).to_json())
    program = f"import pathlib, sys; pathlib.Path(sys.argv[1]).write_text({text!r}); sys.exit({exit_code})"
    return Played(name, Kind.BENCH, 100, 2, program=program)


def breaks(name: str) -> Played:
    return Played(name, Kind.BENCH, 10, 1, program="raise SystemExit(3)")


def measured(docs: Path, *suites: Suite, **options: str) -> tuple[int, str]:
    """The exit code and the page."""
    page = docs / performance.PAGE
    if not page.exists():
        page.write_text(PAGE + "".join(place(suite.name) for suite in suites), encoding="utf-8")
    arguments = [part for name, value in options.items() for part in (f"--{name}".replace("_", "-"), value) if part]
    code = performance.main(["--docs", str(docs), *arguments], suites)
    return code, page.read_text(encoding="utf-8")


def test_a_failing_suite_is_named_and_the_others_still_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, page = measured(tmp_path, breaks("bad"), writes("good"))
    assert code == 1
    told = capfd.readouterr().err
    assert "*** FAILED: bad: it ended with exit code 3 and without a result ***" in told
    assert "[1/2] bad, about 10 s; 2 min left in all ..." in told
    assert "[2/2] good, about 2 min; 2 min left in all ..." in told
    assert "| hot | 1.00 x |" in page
    assert "it ended with exit code 3" in page


def test_a_suite_with_a_missed_target_has_a_result(tmp_path: Path) -> None:
    assert measured(tmp_path, writes("good", exit_code=1))[0] == 0


def test_the_expected_duration_is_that_of_the_last_run_of_the_same_kind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    measured(tmp_path, writes("good"))
    file = tmp_path / performance.FOLDER / "runs.json"
    runs = json.loads(file.read_text(encoding="utf-8"))
    assert runs["good"]["seconds"] < 42, "it was measured, and is next to nothing"
    runs["good"]["seconds"] = 42.0
    file.write_text(json.dumps(runs), encoding="utf-8")
    measured(tmp_path, writes("good"))
    assert "good, about 42 s" in capfd.readouterr().err
    measured(tmp_path, writes("good"), quick="")
    assert "good, about 2 s" in capfd.readouterr().err, "a full run says nothing about a quick one"


def test_only_runs_only_the_named_suites(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, page = measured(tmp_path, breaks("bad"), writes("good"), only="good")
    assert code == 0
    assert "bad" not in capfd.readouterr().err
    assert page.count("Not measured.") == 1


@pytest.mark.parametrize(("options", "is_measured"), [({}, False), ({"full": ""}, True), ({"only": "slow"}, True)])
def test_long_suites_run_only_on_request(
    tmp_path: Path, options: dict[str, str], is_measured: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    code, page = measured(tmp_path, evolve(writes("slow"), is_long=True), **options)
    assert code == 0
    assert ("Not measured." in page) is not is_measured
    assert ("[1/1] slow" in capfd.readouterr().err) is is_measured


def test_render_only_runs_no_suite(tmp_path: Path) -> None:
    code, page = measured(tmp_path, breaks("bad"), render_only="")
    assert code == 0
    assert "Not measured." in page


def test_a_missing_section_and_a_missing_explanation_are_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(Results(tmp_path / performance.FOLDER), tmp_path, bench("good"), BAD)
    (tmp_path / performance.PAGE).write_text(place("good"), encoding="utf-8")
    assert measured(tmp_path, bench("good"), bench("tea"), render_only="")[0] == 1
    told = capfd.readouterr().err
    assert "*** performance.md has no section for tea ***" in told
    assert "*** performance.md does not fully explain why this aim was missed: good: tea: a|b ***" in told


def test_a_quick_run_does_not_replace_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        performance.main(["--quick"], [breaks("bad")])
    assert "--docs" in capsys.readouterr().err


def test_a_hanging_suite_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance_run, "_LEAST_PATIENCE", 0.0)
    code, page = measured(tmp_path, Played("bad", Kind.BENCH, 0, 0, program="import signal; signal.pause()"))
    assert code == 1
    assert "it did not end within 0 s" in page


def test_without_weights_the_models_suite_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def find(name: str) -> Path:
        raise WeightsNotFetched(KNOWN[name])

    monkeypatch.setattr(performance_suites, "find", find)
    code, page = measured(tmp_path, breaks("models"))
    assert code == 0
    assert "*** SKIPPED: models: the weights are missing" in capfd.readouterr().err
    assert "footlights models fetch smollm2" in page


def test_with_weights_nothing_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance_suites, "find", Path)
    assert [why_not_here(suite) for suite in SUITES] == [None] * len(SUITES)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_command_writes_its_result_to_the_file(suite: Suite) -> None:
    command = suite.command(Path("result.json"), quick=True)
    assert command[:2] == (sys.executable, "-m")
    assert command[-3:] == ("--json", "result.json", "--quick")
    assert "--quick" not in suite.command(Path("result.json"), quick=False)


# -- facts of a run


def test_changed_results_do_not_count_as_changed_files(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert this_commit(tmp_path) == performance_run.Commit(None, changed=False)
    git("init")
    (tmp_path / "code.py").write_text("1", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "first")
    (tmp_path / "docs/performance").mkdir(parents=True)
    (tmp_path / "docs/performance.md").write_text("page", encoding="utf-8")
    (tmp_path / "docs/performance/core.json").write_text("{}", encoding="utf-8")
    commit = this_commit(tmp_path)
    assert commit.name is not None
    assert not commit.changed
    (tmp_path / "code.py").write_text("2", encoding="utf-8")
    assert this_commit(tmp_path) == performance_run.Commit(commit.name, changed=True)


def test_the_share_of_others_leaves_out_the_measured_processes() -> None:
    cpus = os.cpu_count() or 1
    before = Worked(at=100.0, machine=50.0, children=5.0)
    after = Worked(at=110.0, machine=50.0 + 7.0, children=5.0 + 4.0)
    assert share_of_others(before, after) == pytest.approx(3.0 / (10.0 * cpus))
    assert share_of_others(before, evolve(after, children=50.0)) == 0.0
    assert share_of_others(None, after) is share_of_others(before, None) is None


def test_processor_time_is_unknown_where_the_platform_does_not_report_it(tmp_path: Path) -> None:
    assert worked(tmp_path / "nothing") is None
    told = tmp_path / "stat"
    told.write_text("cpu  100 20 3 4000 5 6 7 0 0 0\ncpu0 1 1 1 1\n", encoding="ascii")
    found = worked(told)
    assert found is not None
    assert found.machine == 123 / os.sysconf("SC_CLK_TCK")
