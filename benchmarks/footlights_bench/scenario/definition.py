"""Scenario: a load, the turns, the trouble and the targets, and the TOML file that describes them.

Every setting is defined once, as an attribute with its allowed values and its meaning. The docs and the checks of a
file are made from these. Times are in seconds, unless a name says ms.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import NOTHING, evolve, field, fields, frozen

from footlights.errors import FootlightsError
from footlights_actors.generator import MAX_TOOL_ROUNDS
from footlights_transports.config.schema import SECONDS, TEXT, WHOLE, Kind, Setting, one_of, whole_from
from footlights_transports.config.source import ConfigError, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_TURNS = 10_000_000
"""Turns of one scenario. They are planned and counted before the first is due."""
SHIPPED = Path(__file__).parent / "scenarios"
SCRIPTED = "scripted"


class UnknownScenario(FootlightsError):
    """Neither a file nor the name of a scenario that is included."""

    code = "unknown_scenario"


class Arrivals(StrEnum):
    """When turns are due."""

    CONSTANT = "constant"
    POISSON = "poisson"
    BURSTS = "bursts"


class Metric(StrEnum):
    """A latency of a turn, as its player sees it. All but `cancel` count from when the turn was due."""

    ACCEPT = "accept"
    FIRST_TOKEN = "first_token"
    FINAL = "final"
    COMMIT = "commit"
    CANCEL = "cancel"
    """From when the cancel was due until the player sees that the turn is over, interrupted or by itself."""


class LedgerKind(StrEnum):
    """Where a stage in this process keeps its commits."""

    DURABLE = "durable"
    MEMORY = "memory"


def _number(allowed: str, fits: Callable[[float], bool]) -> Kind:
    return Kind(allowed, lambda value: SECONDS.fits(value) and fits(cast(float, value)))


_POSITIVE = _number("a number, more than 0", lambda value: value > 0)
_POSITIVE_SECONDS = _number("a number of seconds, more than 0", lambda value: value > 0)
_SHARE = _number("a number from 0 to 1", lambda value: value <= 1)
_PERCENT = _number("a number, more than 0 and at most 100", lambda value: 0 < value <= 100)
_TOOL_CALLS = Kind(
    f"a whole number from 0 to {MAX_TOOL_ROUNDS}",
    lambda value: value in range(MAX_TOOL_ROUNDS + 1) and WHOLE.fits(value),
)


def _setting(kind: Kind, meaning: str) -> dict[str, object]:
    """Metadata of an attribute that is a setting of the file. A setting without a default is required."""
    return {"kind": kind, "meaning": meaning}


def settings_of(part: type[Load | TurnShape | Trouble | Target | Scenario]) -> list[Setting]:
    return [
        Setting(
            each.name,
            each.metadata["kind"],
            each.metadata["meaning"],
            None if each.default is NOTHING else each.default,
            required=each.default is NOTHING,
        )
        for each in fields(part)
        if each.metadata
    ]


@frozen(kw_only=True)
class Load:
    sessions: int = field(metadata=_setting(whole_from(1), "Number of players. They begin turns one after the other."))
    turns_per_second: float = field(metadata=_setting(_POSITIVE, "Average rate of all players together."))
    arrivals: Arrivals = field(
        default=Arrivals.POISSON,
        converter=Arrivals,
        metadata=_setting(
            one_of(*Arrivals),
            "When turns are due: evenly, at random moments like independent players, or many at once.",
        ),
    )
    burst: int = field(default=1, metadata=_setting(whole_from(1), "Turns that are due at once, with `bursts`."))
    duration: float = field(metadata=_setting(_POSITIVE_SECONDS, "How long turns are due and measured."))
    warm_up: float = field(
        default=0.0, metadata=_setting(SECONDS, "How long turns are due before that without being measured.")
    )
    patience: float = field(
        default=30.0,
        metadata=_setting(
            SECONDS, "How long after the last turn was due turns may run; after that they count as failed."
        ),
    )
    seed: int = field(
        default=1, metadata=_setting(whole_from(0), "Seed of all random choices: the same seed gives the same turns.")
    )


@frozen(kw_only=True)
class TurnShape:
    """The input of a player, and what a scripted model does with it."""

    says: str = field(default="Go on.", metadata=_setting(TEXT, "What the player says."))
    model: str = field(
        default=SCRIPTED,
        metadata=_setting(
            TEXT,
            "`scripted`, which the settings below describe; or any model of `footlights play --model`, in the tavern.",
        ),
    )
    tokens: int = field(default=60, metadata=_setting(whole_from(1), "Tokens of a turn."))
    pace: float = field(default=0.02, metadata=_setting(SECONDS, "How long the model waits before each token."))
    load_seconds: float = field(
        default=0.0, metadata=_setting(SECONDS, "How long the model takes to load, the first time.")
    )
    tool_calls: int = field(
        default=0, metadata=_setting(_TOOL_CALLS, "Tool calls of a turn, one after the other, before its tokens.")
    )
    tool_seconds: float = field(default=0.0, metadata=_setting(SECONDS, "How long each tool call takes."))
    ledger: LedgerKind = field(
        default=LedgerKind.DURABLE,
        converter=LedgerKind,
        metadata=_setting(one_of(*LedgerKind), "Whether commits are written to this disk."),
    )


@frozen(kw_only=True)
class Trouble:
    """Cancels, lost connections and slow clients."""

    cancel_share: float = field(default=0.0, metadata=_setting(_SHARE, "Share of the turns that their players cancel."))
    cancel_after: float = field(
        default=0.2, metadata=_setting(SECONDS, "How long after the turn was due the player cancels it.")
    )
    cut_share: float = field(
        default=0.0,
        metadata=_setting(_SHARE, "Share of the turns in which the player's connection is cut and resumed."),
    )
    cut_after: float = field(
        default=0.2, metadata=_setting(SECONDS, "How long after the turn was due the connection is cut.")
    )
    stalled_clients: int = field(
        default=0, metadata=_setting(whole_from(0), "Number of additional clients that follow a session slowly.")
    )
    stall_seconds: float = field(
        default=5.0, metadata=_setting(_POSITIVE_SECONDS, "How long a stalled client waits between two reads.")
    )


@frozen(kw_only=True)
class Target:
    """A bound for a percentile: in milliseconds, or as a multiple of the median of turns played alone."""

    name: str
    metric: Metric = field(converter=Metric, metadata=_setting(one_of(*Metric), "The metric that is bounded."))
    percentile: float = field(
        metadata=_setting(_PERCENT, "The percentile of all turns: 99 is the slowest of the fastest 99 %.")
    )
    at_most_ms: float | None = field(default=None, metadata=_setting(_POSITIVE, "The bound in milliseconds."))
    at_most_ratio: float | None = field(
        default=None,
        metadata=_setting(_POSITIVE, "The bound as a multiple of the median of turns that are played alone."),
    )


@frozen(kw_only=True)
class Scenario:
    name: str
    load: Load
    turn: TurnShape
    trouble: Trouble
    targets: Sequence[Target]
    baseline_turns: int = field(
        default=20,
        metadata=_setting(
            whole_from(2),
            "Turns that are played alone before the load, if a target is a ratio. With cancels, every other one is"
            " canceled.",
        ),
    )
    about: str = field(default="", metadata=_setting(TEXT, "A sentence for the report."))

    @property
    def wants_baseline(self) -> bool:
        return any(target.at_most_ratio is not None for target in self.targets)

    def quick(self) -> Scenario:
        """The same scenario in a second or two: a smoke test, not a measurement."""
        load, turn, trouble = self.load, self.turn, self.trouble
        return evolve(
            self,
            load=evolve(
                load,
                sessions=min(load.sessions, 4),
                turns_per_second=20.0,
                burst=min(load.burst, 4),
                duration=min(load.duration, 1.0),
                warm_up=min(load.warm_up, 0.2),
            ),
            turn=evolve(
                turn,
                tokens=min(turn.tokens, 8),
                pace=min(turn.pace, 0.002),
                load_seconds=min(turn.load_seconds, 0.02),
                tool_seconds=min(turn.tool_seconds, 0.002),
            ),
            trouble=evolve(
                trouble,
                cancel_after=min(trouble.cancel_after, 0.005),
                cut_after=min(trouble.cut_after, 0.005),
                stalled_clients=min(trouble.stalled_clients, 2),
                stall_seconds=min(trouble.stall_seconds, 0.2),
            ),
            baseline_turns=min(self.baseline_turns, 2),
        )


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


def read_scenario(file: Path) -> Scenario:
    """Raises `ConfigError` with everything that is wrong, each with its line."""
    source = Source(file, {})
    top = source.section((), settings_of(Scenario), beside=("load", "turn", "trouble", "targets"))
    load = source.section(("load",), settings_of(Load))
    turn = source.section(("turn",), settings_of(TurnShape))
    trouble = source.section(("trouble",), settings_of(Trouble))
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
    """None if something is wrong with it, which is added to the problems of the source."""
    path = ("targets", name)
    known = len(source.problems)
    given = source.section(path, settings_of(Target))
    if ("at_most_ms" in given) == ("at_most_ratio" in given) and len(source.problems) == known:
        source.complain(path, "needs one bound: at_most_ms or at_most_ratio.")
    return None if len(source.problems) > known else Target(name=name, **given)
