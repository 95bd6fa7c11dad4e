"""Heartbeats of narrated runs: the two times that decide when one is made and when a reader gets it.

While it works, a run in execution mode makes a heartbeat after `HEARTBEAT_AFTER` seconds in which it sent nothing
(`Narrator.heartbeat_at`). A reader that came back late may have been sent something else just before. It then skips
the heartbeat (`RunStream`), and gets the next one.

The laws `heartbeat_quiet` and `heartbeat_pace` bound both: no heartbeat within 2 seconds after another event, and at
most 5 seconds of silence while a step is open, which includes a heartbeat that is skipped.
"""

from __future__ import annotations

HEARTBEAT_AFTER = 2.4
"""Seconds of silence after which a run makes a heartbeat.

At least 2 (`heartbeat_quiet`), at most 3: a reader that skips one is silent for `SKIPPED_WITHIN` and this together,
and `heartbeat_pace` allows 5. `docs/reference/dexi.md` repeats the number, twice.
"""

SKIPPED_WITHIN = 2.0
"""Seconds after any other event in which a reader skips a heartbeat."""
