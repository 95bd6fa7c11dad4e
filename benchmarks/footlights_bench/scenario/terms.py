"""What a scenario says: the load, the turns, the trouble, and the targets. Times are seconds, unless a name says ms."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arrivals(StrEnum):
    """When turns are due."""

    CONSTANT = "constant"
    POISSON = "poisson"
    BURSTS = "bursts"


class Metric(StrEnum):
    """What is measured of a turn, as its player sees it. All but `cancel` count from when the turn was due."""

    ACCEPT = "accept"
    FIRST_TOKEN = "first_token"
    FINAL = "final"
    COMMIT = "commit"
    CANCEL = "cancel"
    """From when the cancel was due until the player sees that the turn is over, interrupted or by itself."""


class LedgerKind(StrEnum):
    """Where a stage of this process keeps its commits."""

    DURABLE = "durable"
    MEMORY = "memory"


SCRIPTED = "scripted"


@frozen(kw_only=True)
class Load:
    """How many turns, and when."""

    sessions: int
    turns_per_second: float
    arrivals: Arrivals = field(default=Arrivals.POISSON, converter=Arrivals)
    burst: int = 1
    duration: float
    warm_up: float = 0.0
    patience: float = 30.0
    seed: int = 1


@frozen(kw_only=True)
class TurnShape:
    """What a player says, and what a scripted model does about it."""

    says: str = "Go on."
    model: str = SCRIPTED
    tokens: int = 60
    pace: float = 0.02
    load_seconds: float = 0.0
    tool_calls: int = 0
    tool_seconds: float = 0.0
    ledger: LedgerKind = field(default=LedgerKind.DURABLE, converter=LedgerKind)


@frozen(kw_only=True)
class Trouble:
    """What goes wrong on purpose."""

    cancel_share: float = 0.0
    cancel_after: float = 0.2
    cut_share: float = 0.0
    cut_after: float = 0.2
    stalled_clients: int = 0
    stall_seconds: float = 5.0


@frozen(kw_only=True)
class Target:
    """A bound for a percentile: in milliseconds, or as a multiple of the median of turns that are played alone."""

    name: str
    metric: Metric = field(converter=Metric)
    percentile: float
    at_most_ms: float | None = None
    at_most_ratio: float | None = None


@frozen(kw_only=True)
class Scenario:
    """A load, and what is expected under it."""

    name: str
    load: Load
    turn: TurnShape
    trouble: Trouble
    targets: Sequence[Target]
    baseline_turns: int = 20
    """How many turns are played alone, before the load, if a target asks for it."""
    about: str = ""

    @property
    def wants_baseline(self) -> bool:
        return any(target.at_most_ratio is not None for target in self.targets)

    def quick(self) -> Scenario:
        """The same in a second or two: it shows that everything works, and measures nothing."""
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
