"""The judgement of one turn: all of what it asks for becomes true, or nothing does.

`judge` is a pure function: the same request, world, rules and previous digest give the same record, to the
last byte, wherever and whenever they are judged. It never raises because of an intent, a rule or a change:
each such failure becomes an issue of a `fail_closed` record, and the world stays what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from footlights.authority.digest import canonical
from footlights.authority.intents import check_intent
from footlights.authority.patch import PatchFailed, to_json
from footlights.authority.record import CommitRecord, IntentEntry, Verdict, issue_json, sealed
from footlights.authority.rules import refuse
from footlights.errors import InvalidCommand, TooLarge
from footlights.events import CommitOutcome, InterruptReason, Issue

if TYPE_CHECKING:
    from footlights.authority.artifacts import Artifact
    from footlights.authority.intents import Intent
    from footlights.authority.patch import PatchOp
    from footlights.authority.rules import Rule, RuleBook, Ruling
    from footlights.authority.world import World
    from footlights.events import JsonValue


MAX_RULING_BYTES = 4_000_000
"""What one rule may say about one turn, changes and artifacts included."""


@frozen
class JudgeRequest:
    """A turn that has ended: how, and what it staged."""

    session_id: str
    turn_id: str
    interrupted: InterruptReason | None
    """None if it ended with `turn_final`."""
    intents: tuple[Intent, ...] = ()
    """In the order they were staged."""


@frozen
class Judgement:
    """What was decided about a turn."""

    record: CommitRecord
    """For the ledger."""
    world: World
    """The world after the turn: the same object as before, unless the turn changed it."""


def judge(request: JudgeRequest, world: World, rules: RuleBook, previous_digest: str | None) -> Judgement:
    """Decide about a turn. `previous_digest` is that of the session's last commit, None for its first."""
    reason = request.interrupted
    finding = _examine(request, world, rules) if reason is None else _discard(reason)
    after = world if finding.world is None else finding.world
    record = CommitRecord(
        session_id=request.session_id,
        turn_id=request.turn_id,
        outcome=CommitOutcome.FAIL_CLOSED if finding.issues else CommitOutcome.OK,
        issues=finding.issues,
        intents=finding.intents,
        verdicts=finding.verdicts,
        changes=finding.changes,
        artifacts=finding.artifacts,
        world_before=world.digest(),
        world_after=after.digest(),
        previous=previous_digest,
    )
    return Judgement(sealed(record), after)


@frozen
class _Finding:
    issues: tuple[Issue, ...] = ()
    intents: tuple[IntentEntry, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    changes: tuple[PatchOp, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    world: World | None = None


def _discard(reason: InterruptReason) -> _Finding:
    return _Finding((Issue("turn_interrupted", f"The turn was interrupted: {reason.value}."),))


def _examine(request: JudgeRequest, world: World, rules: RuleBook) -> _Finding:
    try:
        entries = tuple(IntentEntry(it.type, it.ref, check_intent(it)) for it in request.intents)
    except (InvalidCommand, TooLarge) as error:
        return _Finding((Issue("invalid_intent", f"An intent of the turn cannot be judged: {error.code}."),))

    rulings = [(name, _ask(name, rule, world, request.intents)) for name, rule in rules.items()]
    verdicts = tuple(Verdict(name, tuple(issue.code for issue in ruling.issues)) for name, ruling in rulings)
    issues = tuple(issue for _, ruling in rulings for issue in ruling.issues)
    if issues:
        return _Finding(issues, entries, verdicts)

    steps = [(name, op) for name, ruling in rulings for op in ruling.changes]
    after = _change(world, steps)
    if isinstance(after, Issue):
        return _Finding((after,), entries, verdicts)
    artifacts = tuple(artifact for _, ruling in rulings for artifact in ruling.artifacts)
    return _Finding((), entries, verdicts, tuple(op for _, op in steps), artifacts, after)


def _ask(name: str, rule: Rule, world: World, intents: tuple[Intent, ...]) -> Ruling:
    try:
        # Each rule has copies of its own, so that none can steer the ones behind it.
        ruling = rule(world.view(), tuple(evolve(intent) for intent in intents))
        _check_issues(ruling)
        # Whatever has no canonical form could not be recorded, so it fails here, where it has a name.
        canonical(_ruling_json(ruling), max_bytes=MAX_RULING_BYTES)
    except TooLarge:
        return refuse("ruling_too_large", f"The rule may say no more than {MAX_RULING_BYTES} bytes.", name)
    except Exception as error:  # noqa: BLE001 - a supervision boundary: a rule that breaks refuses the turn
        # Only the type: the text of the exception may quote what was said.
        return refuse("rule_error", type(error).__name__, name)
    return ruling


def _ruling_json(ruling: Ruling) -> list[JsonValue]:
    return [
        [to_json(op) for op in ruling.changes],
        [issue_json(issue) for issue in ruling.issues],
        [artifact.document for artifact in ruling.artifacts],
    ]


def _check_issues(ruling: Ruling) -> None:
    texts: list[object] = [text for it in ruling.issues for text in (it.code, it.message, it.ref or "-")]
    if not all(isinstance(text, str) and text for text in texts):
        raise TypeError("an issue has a code and a message")


def _change(world: World, steps: list[tuple[str, PatchOp]]) -> World | Issue:
    if not steps:
        return world
    try:
        after = world.changed(tuple(op for _, op in steps))
        after.digest()
    except PatchFailed as error:
        name, op = steps[error.index]
        return Issue(error.code, f"Change {error.index} of the turn, {op.op}, does not fit the world.", name)
    except TooLarge as error:
        return Issue(error.code, "The world would become larger than it may.")
    except Exception as error:  # noqa: BLE001 - a supervision boundary: so does a host's world that breaks
        return Issue("world_error", type(error).__name__)
    return after
