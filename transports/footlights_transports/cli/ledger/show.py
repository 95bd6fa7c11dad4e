"""Text form of a commit: the outcome of the turn, its intents and verdicts, and the changes of the world. Pure.

A ledger may come from an untrusted source, so control characters are escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority.patch import to_json
from footlights.events import CommitOutcome
from footlights.ids import HOST, OPERATOR
from footlights_transports.cli.ledger.diff import difference, in_short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from footlights.authority.audit.reader import Entry
    from footlights.authority.record import CommitRecord, IntentEntry, Verdict
    from footlights.events import Issue, JsonValue


_ORIGINS = {
    HOST: f"{HOST}: none, the host committed it",
    OPERATOR: f"{OPERATOR}: none, an operator patched the world, and no rule judged it",
}


def one_line(entry: Entry, record: CommitRecord) -> str:
    """A commit in a list."""
    if record.outcome is CommitOutcome.OK:
        made = len(record.changes)
        result = "ok, nothing changed" if made == 0 else f"ok, {made} change{'s' if made > 1 else ''}"
    else:
        result = f"fail_closed, {' '.join(issue.code for issue in record.issues)}"
    if record.why is not None:
        result = f"{result}: {record.why}"
    return harmless(f"{entry.position:>6}  {record.commit_id}  {record.session_id}  {record.turn_id}  {result}")


def in_full(entry: Entry, record: CommitRecord, worlds: tuple[JsonValue, JsonValue] | None) -> Iterator[str]:
    """A commit in detail. `worlds` are the documents before and after it, if they are known."""
    yield harmless(f"commit {entry.position}, {record.commit_id}: {record.outcome}")
    yield from _section("session", [_ORIGINS.get(record.session_id, record.session_id)])
    yield from _section("why", [] if record.why is None else [record.why])
    yield from _section("turn", [f"{record.turn_id}, in epoch {entry.epoch}"])
    yield from _section("digest", [record.commit_digest])
    yield from _section("after", [record.previous or "nothing: it is the first commit of its session"])
    yield from _section("mode", _decision(record.mode_decision))
    yield from _section("because", map(_issue, record.issues))
    yield from _section("intents", map(_intent, record.intents) if record.intents else ["none"])
    yield from _section("rules", map(_verdict, record.verdicts) if record.verdicts else ["none was asked"])
    yield from _section("world", [record.world_before, *_arrow(record)])
    yield from _section("changes", _changes(record, worlds))
    yield from _section("left", (f"{each.kind}, {each.ref}" for each in record.artifacts))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield harmless(f"  {title:<8}  {line}")
        title = ""


def _issue(issue: Issue) -> str:
    about = f" ({issue.ref})" if issue.ref else ""
    return f"{issue.code}{about}: {issue.message}"


def _intent(intent: IntentEntry) -> str:
    payload = f"payload {intent.payload_digest[:16]}…" if intent.payload_digest else "no payload"
    return f"{intent.type} {intent.ref}, {payload}"


def _decision(decision: dict[str, JsonValue] | None) -> list[str]:
    """The decision about the mode of the turn, if there was one."""
    if decision is None:
        return []
    return [f"{decision.get('mode')}, by the policy {decision.get('policy')}", in_short(decision, 1_000)]


def _verdict(verdict: Verdict) -> str:
    return f"{verdict.rule}: {'refused, ' + ' '.join(verdict.codes) if verdict.codes else 'accepted'}"


def _arrow(record: CommitRecord) -> list[str]:
    return ["stays as it is"] if record.world_after == record.world_before else [f"becomes {record.world_after}"]


def _changes(record: CommitRecord, worlds: tuple[JsonValue, JsonValue] | None) -> list[str]:
    if not record.changes:
        return ["none"]
    if worlds is None:
        return [in_short(to_json(change)) for change in record.changes]
    return list(difference(*worlds)) or ["none in effect"]


def harmless(text: str) -> str:
    """The text with every character escaped that is not printable."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
