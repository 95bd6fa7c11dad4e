"""Every limit of a stage, in one frozen value."""

from __future__ import annotations

from attrs import fields, frozen

from footlights.errors import RegistrationError

MAX_REPLAY_TURNS = 512
"""Clients must remember which turns they have whole, at least for as long as they could be told of them again."""

_MAY_BE_ZERO = frozenset({"max_queued_turns", "replay_sessions", "replay_turns"})


@frozen(kw_only=True)
class Limits:
    """Every limit of a stage. Times are seconds. Raises `RegistrationError` for a value that makes no sense."""

    best_effort_max_events_per_turn: int = 256
    """Token deltas and load progress that one subscriber may have waiting, for one turn."""
    bounded_max_events_per_turn: int = 128
    """Tool and model events that one subscriber may have waiting, for one turn."""
    max_bytes_per_turn_queue: int = 1_000_000
    """Bytes of both kinds that one subscriber may have waiting, for one turn."""

    max_turn_text_bytes: int = 500_000
    """A turn that says more is interrupted."""
    max_turn_events: int = 1_024
    """Events other than plain token deltas that one turn may emit."""
    max_event_bytes: int = 65_536
    """One event from a workload or one tool result."""
    max_input_bytes: int = 65_536
    """What a player may say at once."""
    max_intents_per_turn: int = 256
    """Intents that one turn and its tools may stage together."""
    max_intent_bytes_per_turn: int = 1_000_000
    """Bytes of those intents, as canonical JSON."""

    max_queued_turns: int = 16
    """Turns of one session that wait for the one before."""
    max_concurrent_turns: int = 16
    """Turns of one session that run at once, when declared concurrent."""
    max_open_turns: int = 4_096
    """Turns of the whole stage that are not committed yet, or whose actors still run."""
    max_running_tools: int = 1_024
    """Tools of the whole stage that run at once, those that outlived their turns included."""
    max_sessions: int = 100_000
    """Sessions of the whole stage that are open."""
    max_subscribers: int = 64
    """Subscribers of one session."""
    max_turns_per_subscriber: int = 64
    """Turns that one subscriber may have events waiting for, or be told of from the ledger when it comes back; past it,
    it is detached and may resume."""
    replay_turns: int = 4
    """Finished turns of a session kept for returning subscribers; at most 512, because clients remember them too."""
    replay_sessions: int = 256
    """Closed sessions kept for subscribers that come back for the end of them."""

    rule_budget: float = 1.0
    """How long one rule may take over one turn; one that takes longer fails the turn closed."""
    load_timeout: float = 300.0
    """A turn whose model has been loading for so many seconds, without a word about it, is interrupted."""
    stall_timeout: float = 30.0
    """A turn whose model or tool was silent for so many seconds is interrupted."""
    turn_timeout: float = 600.0
    """A turn that ran for so many seconds is interrupted."""
    stall_detach: float = 30.0
    """A subscriber that took nothing for so many seconds, while events waited, is detached."""
    tool_cancel_grace: float = 0.25
    """How long an interrupted turn waits for its running tools before it ends without them."""
    shutdown_deadline: float = 10.0
    """How long a closing stage waits for its last commits, and then for its traces."""

    def __attrs_post_init__(self) -> None:
        for limit in fields(type(self)):
            value = getattr(self, limit.name)
            in_seconds = isinstance(limit.default, float)
            minimum = 0 if in_seconds or limit.name in _MAY_BE_ZERO else 1
            if not isinstance(value, int | float if in_seconds else int):
                raise RegistrationError(
                    f"{limit.name} is {value!r}; it must be a {'' if in_seconds else 'whole '}number."
                )
            if limit.name == "replay_turns" and value > MAX_REPLAY_TURNS:
                raise RegistrationError(f"replay_turns is {value}; it must be at most {MAX_REPLAY_TURNS}.")
            if not value >= minimum:
                raise RegistrationError(f"{limit.name} is {value}; it must be at least {minimum}.")
