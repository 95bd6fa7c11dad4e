"""`footlights mission`: callouts that were recorded, decided again."""

from __future__ import annotations

from collections import deque
from pathlib import Path  # noqa: TC003 - typer looks at it
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import typer

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(help="Mission callouts.")


@app.callback()
def mission() -> None:
    """Mission callouts."""


@app.command("replay")
def replay_callouts(
    recording: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="Callouts, one JSON object a line.")
    ],
    payloads: Annotated[bool, typer.Option("--payloads", help="Print whole payloads, with their texts.")] = False,
) -> None:
    """Decide about recorded callouts again, and print each decision as a line of JSON.

    Each line is a body of POST /api/voice/speak, with policy_ts_ms, policy_seq, voice_failed_ms, voice_dropped_ms and
    ended_seq as they were answered; voice_fails: true says that a voice failed at once. With board it was sent to the
    board of that mission, and with closes, the id of an event before it, it closed that event there. With user it was
    that user's. Blank lines say nothing. The same file gives the same output, in any process.
    """
    from footlights_transports.views.mission.pure.replay import replay

    lines = _Lines(recording)
    try:
        for decision in replay(lines.entries()):
            payload = decision.payload
            shown = payload.document if payloads else payload.suppression.document
            line = {"line": lines.decided(), "event_id": payload.event_id, "speak": decision.speak, **shown}
            typer.echo(orjson.dumps(line))
    except InvalidCommand as error:
        typer.echo(f"{recording}:{lines.number}: {error}", err=True)
        raise typer.Exit(2) from None


class _Lines:
    """The lines of a recording, and which of them are decided."""

    def __init__(self, recording: Path) -> None:
        self.number = 0
        """That of the line that was read last."""
        self._recording = recording
        self._waiting: deque[int] = deque()

    def entries(self) -> Iterator[dict[str, object]]:
        with self._recording.open("rb") as lines:
            for self.number, line in enumerate(lines, start=1):
                if line.strip():
                    entry = _entry(line)
                    self._waiting.append(self.number)
                    yield entry

    def decided(self) -> int:
        """The number of the next line that is decided: that happens in their order."""
        return self._waiting.popleft()


def _entry(line: bytes) -> dict[str, object]:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise InvalidCommand("is not valid JSON") from None
    if not isinstance(entry, dict):
        raise InvalidCommand("must be a JSON object")
    return cast("dict[str, object]", entry)
