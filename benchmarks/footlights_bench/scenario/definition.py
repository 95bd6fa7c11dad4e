"""Scenario: a load, the turns, the trouble and the targets.

Every setting is defined once, as an attribute with its allowed values, its meaning and the systems on which it has an
effect. The docs and the checks of a file are made from these. Times are in seconds, unless a name says ms.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import NOTHING, evolve, field, fields, frozen

from footlights import BudgetTier, BusyRule
from footlights_actors.generator import MAX_TOOL_ROUNDS
from footlights_transports.config.schema import FLAG, SECONDS, TEXT, WHOLE, Kind, Setting, one_of, whole_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_TURNS = 10_000_000
"""Turns of one scenario. They are planned and counted before the first is due."""


class SystemKind(StrEnum):
    """What a scenario is played against. Some settings have no effect on some of them."""

    STAGE = "stage"
    """A stage in this process."""
    NATIVE = "native"
    """A Footlights server, over WebSocket."""
    HTTP = "http"
    """A Footlights server, over HTTP."""
    OTHER = "other"
    """Any other server."""


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
    MODEL_LOADING = "model_loading"
    """From when the player sees that a model was selected until it sees that the model is being loaded."""
    INTER_TOKEN = "inter_token"
    """From one piece of text to the next, of all turns."""


class Share(StrEnum):
    """A figure over all turns."""

    FAILED_SHARE = "failed_share"
    """Turns that failed, from 0 to 1."""
    GOODPUT = "goodput"
    """Turns a second that met every bound in milliseconds."""


Measure: TypeAlias = Metric | Share


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
_ON_STAGE = frozenset({SystemKind.STAGE})
_ON_FOOTLIGHTS = frozenset({SystemKind.STAGE, SystemKind.NATIVE, SystemKind.HTTP})
_ON_CONNECTIONS = frozenset({SystemKind.STAGE, SystemKind.NATIVE})
_ON_NATIVE = frozenset({SystemKind.NATIVE})
_EVERYWHERE = frozenset(SystemKind)
_TOOL_CALLS = Kind(
    f"a whole number from 0 to {MAX_TOOL_ROUNDS}",
    lambda value: value in range(MAX_TOOL_ROUNDS + 1) and WHOLE.fits(value),
)


def _is_said(value: object) -> bool:
    if isinstance(value, dict):
        said = cast("dict[str, object]", value)
        weight = said.get("weight", 1)
        return said.keys() <= {"text", "weight"} and TEXT.fits(said.get("text")) and _POSITIVE.fits(weight)
    return TEXT.fits(value)


def _says(value: Any) -> tuple[Said, ...]:
    """From what the file has, or from what was made of it."""
    given = [value] if isinstance(value, str) else value
    return tuple(
        each if isinstance(each, Said) else Said(each) if isinstance(each, str) else Said(**each) for each in given
    )


_SAYS = Kind(
    "a string, or a list of strings and of { text, weight }",
    lambda value: (
        TEXT.fits(value)
        or (isinstance(value, list) and value != [] and all(map(_is_said, cast("list[object]", value))))
    ),
)


def _setting(kind: Kind, meaning: str, on: frozenset[SystemKind] = _EVERYWHERE) -> dict[str, object]:
    """Metadata of an attribute that is a setting of the file. A setting without a default is required."""
    return {"kind": kind, "meaning": meaning, "on": on}


Part: TypeAlias = "Load | TurnShape | Trouble"


def settings_of(part: type[Part | Target | Scenario]) -> list[Setting]:
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


def without_effect(part: type[Part], kind: SystemKind) -> frozenset[str]:
    """The settings that do nothing on a system of this kind."""
    return frozenset(each.name for each in fields(part) if kind not in each.metadata["on"])


@frozen
class Said:
    """Something that players say, and how often compared with the others."""

    text: str
    weight: float = 1.0


@frozen(kw_only=True)
class Load:
    sessions: int = field(metadata=_setting(whole_from(1), "Number of players. They begin turns one after the other."))
    turns_per_second: float = field(metadata=_setting(_POSITIVE, "Average rate of all players together."))
    ramp_to: float | None = field(
        default=None,
        metadata=_setting(
            _POSITIVE, "The rate at the end, if it changes evenly from the beginning of the measurement."
        ),
    )
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
    batch: bool = field(
        default=False,
        metadata=_setting(
            FLAG,
            "Whether players ask the server for events in batches, up to 20 ms late, as the Python client does.",
            _ON_NATIVE,
        ),
    )


@frozen(kw_only=True)
class TurnShape:
    """The input of a player, and what a scripted model does with it."""

    says: Sequence[Said] = field(
        default=(Said("Go on."),),
        converter=_says,
        metadata=_setting(
            _SAYS, "What players say. Of several, each is said as often as its weight; without one, the weight is 1."
        ),
    )
    model: str | None = field(
        default=None,
        metadata=_setting(
            TEXT,
            "On a server, the id of one of its models. In process, any model of `footlights play --model`, in the"
            " tavern; without one, a scripted model, which the settings below describe.",
        ),
    )
    persona: str | None = field(default=None, metadata=_setting(TEXT, "The persona that answers.", _ON_FOOTLIGHTS))
    tier: BudgetTier | None = field(
        default=None, metadata=_setting(one_of(*BudgetTier), "The budget of output tokens.", _ON_FOOTLIGHTS)
    )
    busy: BusyRule | None = field(
        default=None,
        metadata=_setting(
            one_of(*BusyRule), "What happens if the turn before still runs: `queue` by default.", _ON_FOOTLIGHTS
        ),
    )
    tokens: int = field(default=60, metadata=_setting(whole_from(1), "Tokens of a turn.", _ON_STAGE))
    pace: float = field(
        default=0.02, metadata=_setting(SECONDS, "How long the model waits before each token.", _ON_STAGE)
    )
    load_seconds: float = field(
        default=0.0, metadata=_setting(SECONDS, "How long the model takes to load, the first time.", _ON_STAGE)
    )
    tool_calls: int = field(
        default=0,
        metadata=_setting(_TOOL_CALLS, "Tool calls of a turn, one after the other, before its tokens.", _ON_STAGE),
    )
    tool_seconds: float = field(default=0.0, metadata=_setting(SECONDS, "How long each tool call takes.", _ON_STAGE))
    ledger: LedgerKind = field(
        default=LedgerKind.DURABLE,
        converter=LedgerKind,
        metadata=_setting(one_of(*LedgerKind), "Whether commits are written to this disk.", _ON_STAGE),
    )

    @property
    def asked_of_footlights(self) -> dict[str, Any]:
        """The parameters of each turn that Footlights itself understands."""
        asked = {"persona": self.persona, "tier": self.tier, "busy": self.busy}
        return {name: str(value) for name, value in asked.items() if value is not None}


@frozen(kw_only=True)
class Trouble:
    """Cancels, lost connections and slow clients."""

    cancel_share: float = field(default=0.0, metadata=_setting(_SHARE, "Share of the turns that their players cancel."))
    cancel_after: float = field(
        default=0.2, metadata=_setting(SECONDS, "How long after the turn was due the player cancels it.")
    )
    cut_share: float = field(
        default=0.0,
        metadata=_setting(
            _SHARE, "Share of the turns in which the player's connection is cut and resumed.", _ON_CONNECTIONS
        ),
    )
    cut_after: float = field(
        default=0.2,
        metadata=_setting(SECONDS, "How long after the turn was due the connection is cut.", _ON_CONNECTIONS),
    )
    stalled_clients: int = field(
        default=0,
        metadata=_setting(whole_from(0), "Number of additional clients that follow a session slowly.", _ON_CONNECTIONS),
    )
    stall_seconds: float = field(
        default=5.0,
        metadata=_setting(_POSITIVE_SECONDS, "How long a stalled client waits between two reads.", _ON_CONNECTIONS),
    )


def _measure(value: str) -> Measure:
    return Metric(value) if value in list(Metric) else Share(value)


@frozen(kw_only=True)
class Target:
    """A bound for a percentile, in milliseconds or a multiple of the median of turns played alone, or for a share."""

    name: str
    metric: Measure = field(converter=_measure, metadata=_setting(one_of(*Metric, *Share), "What is bounded."))
    percentile: float | None = field(
        default=None,
        metadata=_setting(_PERCENT, "The percentile of all turns: 99 is the slowest of the fastest 99 %."),
    )
    at_most_ms: float | None = field(default=None, metadata=_setting(_POSITIVE, "The bound in milliseconds."))
    at_most_ratio: float | None = field(
        default=None,
        metadata=_setting(_POSITIVE, "The bound as a multiple of the median of turns that are played alone."),
    )
    at_most_share: float | None = field(default=None, metadata=_setting(_SHARE, "The bound of `failed_share`."))
    at_least_per_second: float | None = field(default=None, metadata=_setting(_POSITIVE, "The bound of `goodput`."))


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
    def allows_failures(self) -> bool:
        """Whether a target decides how many turns may fail. Otherwise none may."""
        return any(target.metric is Share.FAILED_SHARE for target in self.targets)

    def applied(self, kind: SystemKind) -> Mapping[str, Mapping[str, Any]]:
        """The settings that have an effect on a system of this kind, by section."""
        parts: dict[str, Part] = {"load": self.load, "turn": self.turn, "trouble": self.trouble}
        return {
            name: {each.name: getattr(part, each.name) for each in fields(type(part)) if kind in each.metadata["on"]}
            for name, part in parts.items()
        }

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
                ramp_to=None,
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
