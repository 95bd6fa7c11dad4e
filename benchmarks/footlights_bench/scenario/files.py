"""Scenario files: the TOML of a scenario, read and checked, and the scenarios that are included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from footlights.errors import FootlightsError
from footlights_bench.scenario.definition import (
    MAX_TURNS,
    Arrivals,
    Load,
    Metric,
    Scenario,
    Share,
    SystemKind,
    Target,
    Trouble,
    TurnShape,
    settings_of,
    without_effect,
)
from footlights_transports.config.source import ConfigError, Source

if TYPE_CHECKING:
    from footlights_bench.scenario.definition import Part

SHIPPED = Path(__file__).parent / "scenarios"
_NEEDS = {Share.FAILED_SHARE: "at_most_share", Share.GOODPUT: "at_least_per_second"}
_BOUNDS = ("at_most_ms", "at_most_ratio", *_NEEDS.values())


class UnknownScenario(FootlightsError):
    """Neither a file nor the name of a scenario that is included."""

    code = "unknown_scenario"


def shipped() -> list[str]:
    """The names of the included scenarios."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def find_scenario(name: str) -> Path:
    """The file of a scenario, by its path or by the name of an included one. Raises `UnknownScenario`."""
    if name in shipped():
        return SHIPPED / f"{name}.toml"
    if not (file := Path(name)).exists():
        raise UnknownScenario(
            f"There is no such file, and no scenario of that name. Included scenarios: {', '.join(shipped())}."
        )
    return file


def read_scenario(file: Path, kind: SystemKind = SystemKind.STAGE) -> Scenario:
    """The scenario of a file, for a system of this kind. Raises `ConfigError` with everything that is wrong.

    A setting without effect on the system is wrong, except in an included scenario, which is for every system.
    """
    source = Source(file, {})
    top = source.section((), settings_of(Scenario), beside=("load", "turn", "trouble", "targets"))
    load = _section(source, "load", Load, kind)
    turn = _section(source, "turn", TurnShape, kind)
    trouble = _section(source, "trouble", Trouble, kind)
    _check_load(source, load)
    if kind is SystemKind.STAGE and "persona" in turn and "model" not in turn:
        source.complain(("turn", "persona"), "has no effect on a scripted model: set turn.model too.")
    targets = [target for name in source.table(("targets",)) if (target := _target(source, name)) is not None]
    for target in targets:
        if target.metric is Metric.CANCEL and not trouble.get("cancel_share"):
            source.complain(("targets", target.name), "is about canceled turns, and trouble.cancel_share is 0.")
    if source.problems:
        raise ConfigError(source.problems)
    return Scenario(
        name=file.stem, load=Load(**load), turn=TurnShape(**turn), trouble=Trouble(**trouble), targets=targets, **top
    )


def _section(source: Source, name: str, part: type[Part], kind: SystemKind) -> dict[str, Any]:
    given = source.section((name,), settings_of(part))
    for setting in sorted(given.keys() & without_effect(part, kind)):
        del given[setting]
        if source.file is None or source.file.parent != SHIPPED:
            what = "a stage in process" if kind is SystemKind.STAGE else "this server"
            source.complain((name, setting), f"has no effect on {what}: remove it.")
    return given


def _check_load(source: Source, load: dict[str, Any]) -> None:
    if load.get("burst", 1) > 1 and load.get("arrivals") != Arrivals.BURSTS:
        source.complain(("load", "burst"), f"does nothing unless arrivals is {Arrivals.BURSTS}.")
    if "ramp_to" in load and load.get("arrivals") == Arrivals.BURSTS:
        source.complain(("load", "ramp_to"), f"does nothing if arrivals is {Arrivals.BURSTS}.")
    rate = max(load.get("turns_per_second", 0.0), load.get("ramp_to", 0.0))
    if rate * (load.get("duration", 0.0) + load.get("warm_up", 0.0)) > MAX_TURNS:
        source.complain(("load",), f"has more than {MAX_TURNS:,} turns.")


def _target(source: Source, name: str) -> Target | None:
    """None if something is wrong with it, which is added to the problems of the source."""
    path = ("targets", name)
    known = len(source.problems)
    given = source.section(path, settings_of(Target))
    if len(source.problems) == known:
        _check_target(source, path, given)
    return None if len(source.problems) > known else Target(name=name, **given)


def _check_target(source: Source, path: tuple[str, str], given: dict[str, Any]) -> None:
    bounds = [each for each in _BOUNDS if each in given]
    if given["metric"] in _NEEDS:
        needed = _NEEDS[given["metric"]]
        if bounds != [needed] or "percentile" in given:
            source.complain(path, f"needs {needed}, and neither a percentile nor another bound.")
    elif "percentile" not in given:
        source.complain(path, "needs a percentile.")
    elif len(bounds) != 1 or bounds[0] in _NEEDS.values():
        source.complain(path, "needs one bound: at_most_ms or at_most_ratio.")
