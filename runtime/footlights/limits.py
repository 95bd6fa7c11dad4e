"""Limits of a stage, in one frozen value."""

from __future__ import annotations

from attrs import fields, frozen

from footlights.errors import RegistrationError

MAX_REPLAY_TURNS = 512
"""Upper bound of `replay_turns`: clients remember at least this many complete turns, to ignore replayed ones."""

_MAY_BE_ZERO = frozenset(
    {"max_queued_turns", "replay_bytes", "replay_bytes_per_session", "replay_sessions", "replay_turns"}
)


@frozen(kw_only=True)
class Limits:
    """Every limit of a stage. Times are in seconds. Raises `RegistrationError` for an invalid value."""

    best_effort_max_events_per_turn: int = 256
    """Token deltas and load progress in one subscriber's backlog, for one turn."""
    bounded_max_events_per_turn: int = 128
    """Tool and model events in one subscriber's backlog, for one turn."""
    max_bytes_per_turn_queue: int = 1_000_000
    """Bytes of both kinds in one subscriber's backlog, for one turn."""

    max_turn_text_bytes: int = 500_000
    """Bytes of text of one turn; a turn with more is interrupted."""
    max_turn_events: int = 1_024
    """Events other than plain token deltas that one turn may emit."""
    max_event_bytes: int = 65_536
    """Bytes of one event from a workload or of one tool result."""
    max_input_bytes: int = 65_536
    """Bytes of one input."""
    max_intents_per_turn: int = 256
    """Intents that one turn and its tools may stage together."""
    max_intent_bytes_per_turn: int = 1_000_000
    """Bytes of those intents, as canonical JSON."""

    max_queued_turns: int = 16
    """Turns of one session that wait for an earlier turn."""
    max_concurrent_turns: int = 16
    """Turns of one session that run at the same time, with the busy rule `concurrent`."""
    max_open_turns: int = 4_096
    """Turns of the stage that are not committed yet, or whose actors still run."""
    max_running_tools: int = 1_024
    """Tools of the stage that run at the same time, including tools that outlived their turns."""
    max_sessions: int = 100_000
    """Open sessions of the stage."""
    max_subscribers: int = 64
    """Subscribers of one session."""
    max_turns_per_subscriber: int = 64
    """Turns in one subscriber's backlog, or in its catch-up from the ledger when it resumes. A subscriber past the
    limit is detached and may resume."""
    replay_turns: int = 64
    """Finished turns of a session kept for resuming subscribers; at most 512, because clients remember them too."""
    replay_bytes_per_session: int = 2_000_000
    """Memory that those turns of one session may take; the oldest are dropped, also before `replay_time`."""
    replay_bytes: int = 64_000_000
    """The same for the stage. If it has several users, each may take as much as is free."""
    replay_sessions: int = 256
    """Closed sessions kept for subscribers that resume after the close."""

    replay_time: float = 3_600.0
    """Time for which a finished turn is kept for resuming subscribers, with its text, if these limits allow it."""
    rule_budget: float = 1.0
    """Time for one rule to judge one turn; a rule that takes longer fails the turn closed."""
    load_timeout: float = 300.0
    """Time without progress after which a turn that waits for a loading model is interrupted."""
    stall_timeout: float = 30.0
    """Time of silence of a model or tool after which its turn is interrupted."""
    retry_wait: float = 10.0
    """Longest time that a model may ask a turn to wait, before its first token, until it is asked once more; 0 for no
    second attempt."""
    turn_timeout: float = 600.0
    """Time after which a running turn is interrupted."""
    stall_detach: float = 30.0
    """Time after which a subscriber that takes nothing from its backlog is detached."""
    tool_cancel_grace: float = 0.25
    """Time that an interrupted turn waits for its running tools before it ends without them."""
    shutdown_deadline: float = 10.0
    """Time that a closing stage waits for its last commits, and again for its traces."""

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
