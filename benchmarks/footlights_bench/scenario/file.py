"""Reads a scenario from a TOML file, or finds one that comes along by its name.

Whatever is wrong with a file is said at once, each with its line and what would be allowed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from footlights.errors import FootlightsError
from footlights_actors.generator import MAX_TOOL_ROUNDS
from footlights_bench.scenario.terms import (
    SCRIPTED,
    Arrivals,
    LedgerKind,
    Load,
    Metric,
    Scenario,
    Target,
    Trouble,
    TurnShape,
)
from footlights_transports.config.schema import SECONDS, TEXT, WHOLE, Kind, Setting, one_of, whole_from
from footlights_transports.config.source import ConfigError, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_TURNS = 10_000_000
"""Of one scenario: they are planned and counted before the first is due."""
SHIPPED = Path(__file__).parent / "scenarios"


class UnknownScenario(FootlightsError):
    """Neither a file nor the name of a scenario that comes along."""

    code = "unknown_scenario"


def _number(allowed: str, fits: Callable[[float], bool]) -> Kind:
    return Kind(allowed, lambda value: SECONDS.fits(value) and fits(cast(float, value)))


_MORE_THAN_0 = _number("a number, more than 0", lambda value: value > 0)
_SOME_SECONDS = _number("a number of seconds, more than 0", lambda value: value > 0)
_SHARE = _number("a number from 0 to 1", lambda value: value <= 1)
_PERCENT = _number("a number, more than 0 and at most 100", lambda value: 0 < value <= 100)
_TOOL_CALLS = Kind(
    f"a whole number from 0 to {MAX_TOOL_ROUNDS}",
    lambda value: value in range(MAX_TOOL_ROUNDS + 1) and WHOLE.fits(value),
)

LOAD = (
    Setting("sessions", whole_from(1), "How many players there are. They take turns in turn.", required=True),
    Setting("turns_per_second", _MORE_THAN_0, "Of all players together, on average.", required=True),
    Setting(
        "arrivals",
        one_of(*Arrivals),
        "When turns are due: evenly, at random moments as of players who know nothing of each other, or many at once.",
        "poisson",
    ),
    Setting("burst", whole_from(1), "How many are due at once, with `bursts`.", 1),
    Setting("duration", _SOME_SECONDS, "For how long turns are due, and measured.", required=True),
    Setting("warm_up", SECONDS, "For how long before that they are due and kept apart.", 0.0),
    Setting(
        "patience", SECONDS, "How long after the last turn was due the last may take; then they count as failed.", 30.0
    ),
    Setting("seed", whole_from(0), "Of all that is left to chance: the same one gives the same turns.", 1),
)
TURN = (
    Setting("says", TEXT, "What the player says.", "Go on."),
    Setting(
        "model",
        TEXT,
        "`scripted`, which does what follows; or any that `footlights play --model` takes, in the tavern.",
        SCRIPTED,
    ),
    Setting("tokens", whole_from(1), "How many tokens a turn says.", 60),
    Setting("pace", SECONDS, "How long the model waits before each.", 0.02),
    Setting("load_seconds", SECONDS, "How long the model takes to load, the first time.", 0.0),
    Setting("tool_calls", _TOOL_CALLS, "How many tools a turn calls, one after the other, before it speaks.", 0),
    Setting("tool_seconds", SECONDS, "How long each takes.", 0.0),
    Setting("ledger", one_of(*LedgerKind), "Whether commits are written to this disk.", "durable"),
)
TROUBLE = (
    Setting("cancel_share", _SHARE, "Which share of the turns is canceled by its player.", 0.0),
    Setting("cancel_after", SECONDS, "How long after such a turn was due.", 0.2),
    Setting("cut_share", _SHARE, "In which share of the turns the player's connection is cut; it comes back.", 0.0),
    Setting("cut_after", SECONDS, "How long after such a turn was due.", 0.2),
    Setting("stalled_clients", whole_from(0), "How many more follow the sessions and hardly take anything.", 0),
    Setting("stall_seconds", _SOME_SECONDS, "How long each of those waits before it takes what is there.", 5.0),
)
TARGET = (
    Setting("metric", one_of(*Metric), "What is bounded.", required=True),
    Setting(
        "percentile",
        _PERCENT,
        "Which of all turns it is: 99 is the slowest of the 99 % that are faster.",
        required=True,
    ),
    Setting("at_most_ms", _MORE_THAN_0, "The bound in milliseconds."),
    Setting("at_most_ratio", _MORE_THAN_0, "The bound as a multiple of the median of turns that are played alone."),
)
TOP = (
    Setting("about", TEXT, "A sentence for the report.", ""),
    Setting(
        "baseline_turns",
        whole_from(2),
        "How many turns are played alone, first, if a target is a ratio; every other one is canceled, if any are.",
        20,
    ),
)
PARTS: Mapping[str, Sequence[Setting]] = {"load": LOAD, "turn": TURN, "trouble": TROUBLE}


def shipped() -> list[str]:
    """The names of the scenarios that come along."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def find_scenario(name: str) -> Path:
    """The file that is meant, by its path or by the name of one that comes along. Raises `UnknownScenario`."""
    if name in shipped():
        return SHIPPED / f"{name}.toml"
    if not (file := Path(name)).exists():
        raise UnknownScenario(
            f"There is no such file, and no scenario of that name. There are: {', '.join(shipped())}."
        )
    return file


def read_scenario(file: Path) -> Scenario:
    """Raises `ConfigError` with all that is wrong."""
    source = Source(file, {})
    top = source.section((), TOP, beside=(*PARTS, "targets"))
    load, turn, trouble = (source.section((name,), settings) for name, settings in PARTS.items())
    _check_load(source, load)
    targets = [target for name in source.table(("targets",)) if (target := _target(source, name)) is not None]
    for target in targets:
        if target.metric is Metric.CANCEL and not trouble.get("cancel_share"):
            source.complain(("targets", target.name), "is about canceled turns, and trouble.cancel_share is 0.")
    if source.problems:
        raise ConfigError(source.problems)
    return Scenario(
        name=file.stem, load=Load(**load), turn=TurnShape(**turn), trouble=Trouble(**trouble), targets=targets, **top
    )


def _check_load(source: Source, load: dict[str, Any]) -> None:
    if load.get("burst", 1) > 1 and load.get("arrivals") != Arrivals.BURSTS:
        source.complain(("load", "burst"), f"does nothing unless arrivals is {Arrivals.BURSTS}.")
    turns = load.get("turns_per_second", 0.0) * (load.get("duration", 0.0) + load.get("warm_up", 0.0))
    if turns > MAX_TURNS:
        source.complain(("load",), f"has more than {MAX_TURNS:,} turns.")


def _target(source: Source, name: str) -> Target | None:
    """None if something is wrong with it, which is complained of."""
    path = ("targets", name)
    told = len(source.problems)
    given: dict[str, Any] = source.section(path, TARGET)
    if ("at_most_ms" in given) == ("at_most_ratio" in given) and len(source.problems) == told:
        source.complain(path, "needs one bound: at_most_ms or at_most_ratio.")
    if len(source.problems) > told:
        return None
    return Target(name=name, **given)
