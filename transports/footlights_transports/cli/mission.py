"""Command `footlights mission`: replays recorded callouts."""

from __future__ import annotations

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
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="Callouts, one JSON object per line.")
    ],
    payloads: Annotated[bool, typer.Option("--payloads", help="Print whole payloads, with their texts.")] = False,
) -> None:
    """Decide about recorded callouts again, and print each decision as a line of JSON.

    Each line is a body of POST /api/voice/speak, with policy_ts_ms, policy_seq, voice_failed_ms, voice_dropped_ms and
    ended_seq of its answer; voice_fails: true means that its voice failed at once. board is the mission of a body that
    was sent to a board, closes the id of an earlier event that it closed there, and user the name of its user. Blank
    lines are skipped. The same file gives the same output in any process.
    """
    from footlights_transports.views.mission.pure.recheck import replay

    numbers: list[int] = []
    try:
        for index, decision in enumerate(replay(_entries(recording, numbers))):
            payload = decision.payload
            shown = payload.document if payloads else payload.suppression.document
            line = {"line": numbers[index], "event_id": payload.event_id, "speak": decision.speak, **shown}
            typer.echo(orjson.dumps(line))
    except InvalidCommand as error:
        typer.echo(f"{recording}:{numbers[-1]}: {error}", err=True)
        raise typer.Exit(2) from None


def _entries(recording: Path, numbers: list[int]) -> Iterator[dict[str, object]]:
    """The entries of a recording. The number of each line that is not blank goes into `numbers`."""
    with recording.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            numbers.append(number)
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                raise InvalidCommand("is not valid JSON") from None
            if not isinstance(entry, dict):
                raise InvalidCommand("must be a JSON object")
            yield cast("dict[str, object]", entry)
