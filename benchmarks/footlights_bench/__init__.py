"""The harness that measures Footlights, and other servers: latency under load, comparisons of runs, attacks.

A target of your own, for `footlights bench scenario --target module:name`, is a class with one method, `ask`, that
yields `Moment`; or a function that opens a `System`.
"""

from footlights_bench.scenario.systems.asked import Conversation, Moment
from footlights_bench.scenario.systems.protocol import Client, Depths, Player, Probe, System

__all__ = ["Client", "Conversation", "Depths", "Moment", "Player", "Probe", "System"]
