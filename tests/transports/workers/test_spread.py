"""Spread of worlds, and the totals of metrics."""

from __future__ import annotations

from collections import Counter

from footlights_transports.workers.spread import Spread
from footlights_transports.workers.totals import added_up


def test_named_worlds_are_spread_evenly_and_every_world_has_one_owner() -> None:
    names = tuple(f"inn-{number}" for number in range(8))
    spread = Spread(4, names)
    assert spread.owner("main") == 0
    assert Counter(map(spread.owner, names)) == dict.fromkeys(range(4), 2)
    others = Counter(spread.owner(f"arena-{number}") for number in range(1_000))
    assert others.keys() == {0, 1, 2, 3}
    assert min(others.values()) > 200
    assert Spread(1, ()).owner("arena-1") == 0


def test_metrics_of_processes_are_added_up() -> None:
    one = '# HELP a Amount.\n# TYPE a gauge\na 1.0\n# HELP b Kinds.\n# TYPE b counter\nb_total{kind="x y"} 2.0\n'
    two = '# HELP a Amount.\n# TYPE a gauge\na 2.5\n# HELP b Kinds.\n# TYPE b counter\nb_total{kind="z"} 1.0\n'
    assert added_up([one, two]).splitlines() == [
        "# HELP a Amount.",
        "# TYPE a gauge",
        "a 3.5",
        "# HELP b Kinds.",
        "# TYPE b counter",
        'b_total{kind="x y"} 2.0',
        'b_total{kind="z"} 1.0',
    ]
    assert added_up([]) == ""
