"""No lawful stream is ever blamed, whatever a slow, returning or unlucky subscriber got of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from footlights import laws, wire
from footlights.events import EventType, StreamEvent
from footlights.testing.streams import Recording, recordings


def judged(recording: Recording) -> list[str]:
    found = laws.check(recording.events, after=recording.after, canceled=recording.canceled)
    return [str(violation) for violation in found]


@given(recordings(lossy=False))
def test_whole_turns_are_lawful(recording: Recording) -> None:
    assert judged(recording) == []


@given(recordings())
def test_what_a_slow_or_returning_subscriber_gets_is_lawful(recording: Recording) -> None:
    assert judged(recording) == []


@given(recordings())
def test_events_and_their_wire_form_are_judged_alike(recording: Recording) -> None:
    lines = [wire.encode(event) for event in recording.events]
    assert laws.check_jsonl(lines, after=recording.after, canceled=recording.canceled) == []


@given(recordings(), st.data())
def test_a_recording_cut_short_is_lawful_when_it_says_so(recording: Recording, data: st.DataObject) -> None:
    cut = recording.events[: data.draw(st.integers(0, len(recording.events)))]
    assert laws.check(cut, after=recording.after, canceled=recording.canceled, complete=False) == []
    unfinished = _unfinished(cut)
    found = laws.check(cut, after=recording.after, canceled=recording.canceled)
    assert {violation.turn_id for violation in found} == unfinished


def _unfinished(events: tuple[StreamEvent, ...]) -> set[str]:
    finished = {event.turn_id for event in events if event.event_type is EventType.COMMIT_FINAL}
    return {event.turn_id for event in events} - finished


def test_an_empty_recording_is_lawful() -> None:
    assert laws.check([]) == []


@given(recordings())
def test_a_resumed_turn_must_be_named(recording: Recording) -> None:
    """Without `after`, each turn that does not start at its beginning is found."""
    resumed = {event.turn_id for event in recording.events if recording.after.get(event.turn_id) is not None}
    assert {violation.turn_id for violation in laws.check(recording.events)} == resumed
