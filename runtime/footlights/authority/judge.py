"""Judge: decides about one turn. All of its changes are made, or none.

`judge` is a pure function: the same request, world, rules and previous digest give the same record, byte for byte. It
never raises because of an intent, a rule or a change: each such failure becomes an issue of a `fail_closed` record, and
the world stays unchanged.

The objects that a rule returns are not used themselves: they are written as canonical JSON, and what is read back is
judged and recorded. So a rule cannot change them later, and every record can be read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import orjson
from attrs import field, frozen

from footlights.authority.approvals import answer_in, unknown
from footlights.authority.conflicts import RulesConflict, check_conflicts
from footlights.authority.digest import canonical, is_scalar
from footlights.authority.intents import NO_FACTS, NOTHING_KNOWN, IntentType, check_intent, for_rule
from footlights.authority.interruptions import TURN_INTERRUPTED, interruption
from footlights.authority.patch import PatchFailed, PatchOp, from_json, to_json
from footlights.authority.pending import APPROVALS
from footlights.authority.record import (
    CommitRecord,
    IntentEntry,
    Verdict,
    artifact_from_json,
    issue_from_json,
    issue_json,
    seal,
)
from footlights.authority.rules import Ruling, accept, refuse, wants_every_turn
from footlights.authority.values import MAX_DEPTH
from footlights.authority.world import JsonWorld, checked_digest
from footlights.bad_return import BadReturn, is_unawaited
from footlights.errors import InvalidCommand, TooLarge
from footlights.events import CommitOutcome, InterruptReason, Issue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from footlights.authority.artifacts import Artifact
    from footlights.authority.intents import Intent
    from footlights.authority.rules import Rule, RuleBook
    from footlights.authority.world import World
    from footlights.events import JsonValue

    AskRule: TypeAlias = Callable[[str, Rule, object, tuple[Intent, ...]], Ruling]


_T = TypeVar("_T")
_Failures: TypeAlias = "list[tuple[str, BaseException]]"

MAX_RULING_BYTES = 4_000_000
"""Maximum size of one ruling, including changes and artifacts."""
MAX_RULING_CHANGES = 10_000
MAX_RULING_ISSUES = 256
MAX_RULING_ARTIFACTS = 256


@frozen
class JudgeRequest:
    """A turn that has ended, and the intents that it staged."""

    session_id: str
    turn_id: str
    interrupted: InterruptReason | None
    """None if it ended with `turn_final`."""
    intents: tuple[Intent, ...] = ()
    """In the order they were staged."""
    mode_decision: dict[str, JsonValue] | None = None
    """The decision about its mode, if there was one."""
    failure: str | None = None
    """The code of its failure, if it was interrupted by one."""
    why: str | None = None
    """The host's own words, for a commit of the host."""
    about: bytes = NOTHING_KNOWN
    """What the host says about the player, as JSON, for the rules. The record has nothing of it."""


@frozen
class Judgement:
    """The decision about a turn."""

    record: CommitRecord
    """The record for the ledger."""
    world: World
    """The world after the turn: the same object as before, unless the turn changed it."""
    failures: tuple[tuple[str, BaseException], ...] = field(default=(), eq=False, repr=False)
    """The exceptions of rules and of the world, each with what raised it. The record has none of them."""


def _plainly(_name: str, rule: Rule, view: object, intents: tuple[Intent, ...]) -> Ruling:
    return rule(view, intents)


def judge(
    request: JudgeRequest,
    world: World,
    rules: RuleBook,
    previous_digest: str | None,
    *,
    world_digest: str | None = None,
    ask: AskRule = _plainly,
) -> Judgement:
    """Decide about a turn. `previous_digest` is that of the session's last commit, None for its first.

    `world_digest` is the digest of the world when it was committed. A world with another digest was changed in place,
    and the turn fails closed. Without `world_digest` this is not checked. `ask` calls a rule: a committer measures it.
    """
    reason = request.interrupted
    before = checked_digest(world) if world_digest is None else world_digest
    failures: _Failures = []
    if reason is not None:
        finding = _Finding(interruption(reason, request.failure))
    elif asks_rules(request.intents, rules):
        finding = _examine(request, world, before, rules, ask, failures)
    else:
        finding = _NOTHING_ASKED
    after, world_after = finding.after or (world, before)
    record = CommitRecord(
        session_id=request.session_id,
        turn_id=request.turn_id,
        outcome=CommitOutcome.FAIL_CLOSED if finding.issues else CommitOutcome.OK,
        issues=finding.issues,
        intents=finding.intents,
        verdicts=finding.verdicts,
        changes=finding.changes,
        artifacts=finding.artifacts,
        world_before=before,
        world_after=world_after,
        previous=previous_digest,
        mode_decision=request.mode_decision,
        why=request.why,
    )
    try:
        return Judgement(seal(record, finding.written), after, tuple(failures))
    finally:
        failures.clear()  # breaks the reference cycle of the exceptions and the frames around them


def asks_rules(intents: Sequence[Intent], rules: RuleBook) -> bool:
    """Whether a turn that was not interrupted and staged these intents asks any of these rules."""
    return bool(intents) or any(wants_every_turn(rule) for _, rule in rules.items())


@frozen
class _Finding:
    issues: tuple[Issue, ...] = ()
    intents: tuple[IntentEntry, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    changes: tuple[PatchOp, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    after: tuple[World, str] | None = None
    """The new world and its digest, if the turn changed it."""
    written: bytes = b"[]"
    """The changes as canonical JSON."""


_NOTHING_ASKED = _Finding()


def _examine(
    request: JudgeRequest, world: World, before: str, rules: RuleBook, ask: AskRule, failures: _Failures
) -> _Finding:
    """Apply the rules. The turn is refused if the world was changed in place, before or by the rules."""
    if type(world) is JsonWorld:  # immutable
        return _ruled(request, world, rules, ask, failures)
    found = _supervised(lambda: _same_world(world, before), failures) or _ruled(request, world, rules, ask, failures)
    if isinstance(found, Issue):
        return _Finding((found,))
    changed = _supervised(lambda: _same_world(world, before), failures)
    return found if changed is None else _Finding((changed,), found.intents, found.verdicts)


def _ruled(request: JudgeRequest, world: World, rules: RuleBook, ask: AskRule, failures: _Failures) -> _Finding:
    intents = request.intents
    try:
        entries = tuple([IntentEntry(it.type, it.ref, check_intent(it).payload_digest) for it in intents])
    except (InvalidCommand, TooLarge) as error:
        return _Finding((Issue("invalid_intent", f"An intent of the turn cannot be judged: {error.code}."),))

    copies: tuple[Intent, ...] | None = None
    verdicts: list[Verdict] = []
    issues: list[Issue] = []
    changes: list[PatchOp] = []
    steps: list[tuple[str, PatchOp]] = []
    artifacts: list[Artifact] = []
    written: list[bytes] = []
    for name, rule in rules.items():
        if not intents and not wants_every_turn(rule):
            continue
        if copies is None or not _is_plain(request):
            copies = _copies(request)
        ruling, changes_written = _ask(name, rule, world, copies, ask, failures)
        verdicts.append(_verdict(name, ruling.issues))
        issues += ruling.issues
        artifacts += ruling.artifacts
        if ruling.changes:
            changes += ruling.changes
            written.append(changes_written[1:-1])
            for op in ruling.changes:
                steps.append((name, op))  # noqa: PERF401 - a comprehension would be one more frame
    issues += _unasked(request, rules)
    if issues:
        return _Finding(tuple(issues), entries, tuple(verdicts))

    after = _supervised(lambda: _changed(world, steps, tuple(changes), failures), failures) if steps else None
    if isinstance(after, Issue):
        return _Finding((after,), entries, tuple(verdicts))
    return _Finding((), entries, tuple(verdicts), tuple(changes), tuple(artifacts), after, b"[%b]" % b",".join(written))


def _copies(request: JudgeRequest) -> tuple[Intent, ...]:
    """The intents for a rule."""
    about = NO_FACTS if request.about is NOTHING_KNOWN else orjson.loads(request.about)
    return tuple([for_rule(intent, request.session_id, about) for intent in request.intents])


def _is_plain(request: JudgeRequest) -> bool:
    """Whether the rules may share their copies, because none can change them and so affect a later one."""
    return request.about is NOTHING_KNOWN and all(check_intent(intent).is_plain for intent in request.intents)


def _verdict(name: str, issues: tuple[Issue, ...]) -> Verdict:
    return Verdict(name, tuple(issue.code for issue in issues)) if issues else _accepted(name)


@lru_cache
def _accepted(name: str) -> Verdict:
    return Verdict(name, ())


def _unasked(request: JudgeRequest, rules: RuleBook) -> tuple[Issue, ...]:
    """Issues for answers to approvals in a rule book without approvals, so that no answer seems to have an effect."""
    decisions = [intent for intent in request.intents if intent.type is IntentType.DECISION]
    if not decisions or APPROVALS in rules:
        return ()
    answers = [intent.ref for intent in decisions if answer_in(intent) is not None]
    return tuple(issue for ref in answers for issue in unknown(ref).issues)


# Two supervision boundaries follow: a failing rule refuses the turn, and so does a failing world of the host. They also
# catch what is not an `Exception`: a rule that calls `sys.exit` must not end the committer. A cancel cannot occur here,
# because nothing awaits; `KeyboardInterrupt` propagates. Issues name only the type, because a message may quote text.


def _ask(
    name: str, rule: Rule, world: World, intents: tuple[Intent, ...], ask: AskRule, failures: _Failures
) -> tuple[Ruling, bytes]:
    """The ruling, and its changes as canonical JSON."""
    try:
        return _taken(ask(name, rule, world.view(), intents), rule)
    except TooLarge:
        return refuse("ruling_too_large", _LIMITS, name), b"[]"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - see above
        failures.append((f"the rule {name}", error))
        code = str(error) if isinstance(error, BadReturn) else type(error).__name__
        return refuse("rule_error", code, name), b"[]"


_LIMITS = (
    f"A rule says no more than {MAX_RULING_BYTES} bytes, {MAX_RULING_CHANGES} changes, {MAX_RULING_ISSUES} issues and "
    f"{MAX_RULING_ARTIFACTS} artifacts, and nests nothing deeper than {MAX_DEPTH} levels."
)


def _taken(ruling: object, rule: Rule) -> tuple[Ruling, bytes]:
    """The ruling as it reads back from canonical JSON, and its changes in it. Raises if it has no canonical form."""
    if not isinstance(ruling, Ruling):
        raise _no_ruling(ruling, rule)
    if not (ruling.changes or ruling.issues or ruling.artifacts):
        return _NOTHING, b"[]"
    if (
        len(ruling.changes) > MAX_RULING_CHANGES
        or len(ruling.issues) > MAX_RULING_ISSUES
        or len(ruling.artifacts) > MAX_RULING_ARTIFACTS
    ):
        raise TooLarge(_LIMITS)
    simply_written = None if ruling.issues or ruling.artifacts else _simply_written(ruling.changes)
    if simply_written is not None:
        return ruling, simply_written
    changes_written = canonical([to_json(op) for op in ruling.changes], max_bytes=MAX_RULING_BYTES)
    rest: list[list[JsonValue]] = [
        [issue_json(issue) for issue in ruling.issues],
        [artifact.document for artifact in ruling.artifacts],
    ]
    changes = orjson.loads(changes_written)
    issues, artifacts = orjson.loads(canonical(rest, max_bytes=MAX_RULING_BYTES - len(changes_written)))
    if not all(issue["code"] and issue["message"] for issue in issues):
        raise TypeError("an issue has a code and a message")
    if any(issue["code"] == TURN_INTERRUPTED for issue in issues):
        raise TypeError("only the runtime says that a turn was interrupted")
    taken = Ruling(map(from_json, changes), map(issue_from_json, issues), map(artifact_from_json, artifacts))
    return taken, changes_written


def _simply_written(changes: tuple[PatchOp, ...]) -> bytes | None:
    """Changes as canonical JSON, if they read back from it as they are, and nobody can alter them; otherwise None."""
    for op in changes:
        if (
            type(op) is not PatchOp
            or (type(op.op), type(op.path)) != _STRINGS
            or op.op not in _WITH_VALUE
            or op.from_ is not None
            or not is_scalar(op.value)
        ):
            return None
    try:
        written = orjson.dumps([{"op": op.op, "path": op.path, "value": op.value} for op in changes])
    except TypeError:  # half of a surrogate pair
        return None
    return written if len(written) <= MAX_RULING_BYTES else None


_STRINGS = (str, str)
_WITH_VALUE = frozenset({"add", "replace", "test"})


def _no_ruling(returned: object, rule: Rule) -> BadReturn:
    if is_unawaited(returned):
        return BadReturn("The rule returned a coroutine. Write it with def, and await nothing: a rule is pure.", rule)
    what = "nothing" if returned is None else "no Ruling"
    return BadReturn(f"The rule returned {what}. Return accept(...) or refuse(...) on every path.", rule)


_NOTHING = accept()


def _supervised(ask: Callable[[], _T], failures: _Failures) -> _T | Issue:
    try:
        return ask()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - see above
        failures.append(("the world", error))
        return Issue("world_error", type(error).__name__)


def _same_world(world: World, digest: str) -> Issue | None:
    if checked_digest(world) == digest:
        return None
    return Issue("world_error", "The world was changed in place. It is not the one that was committed last.")


_UNDONE = (
    "change the same place of the world in one turn: the later one would undo the earlier one. Have one rule make both "
    "changes."
)


def _changed(
    world: World, steps: list[tuple[str, PatchOp]], changes: tuple[PatchOp, ...], failures: _Failures
) -> tuple[World, str] | Issue:
    try:
        if steps[0][0] != steps[-1][0]:
            check_conflicts(world.view(), steps)
        after = world.changed(changes)
        return after, checked_digest(after)
    except RulesConflict as error:
        both = f"rules {error.first} and {error.second}"
        failures.append((f"the {both}", error))
        return Issue(error.code, f"The {both} {_UNDONE}", error.second)
    except PatchFailed as error:
        name, op = steps[error.index]
        if op.op != "test":  # a precondition may fail; anything else is a bug of the rule
            failures.append((f"the rule {name}", error))
        # Without the path: a rule may have made it of what a model said. The failure above has it, for the developer.
        return Issue(error.code, f"A change of the rule {name}, {op.op}, does not fit the world: {error.reason}.", name)
    except TooLarge as error:
        return Issue(error.code, "The world would become larger than it may, or nest deeper.")
