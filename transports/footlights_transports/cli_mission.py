"""`footlights mission`: callouts that were recorded, decided again."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer looks at it
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import typer

from footlights.errors import InvalidCommand
from footlights.mission import replay

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

    Each line is a body of POST /api/voice/speak; its policy_ts_ms says when it was decided (without it, when the one
    before was), voice_failed_ms when its voice failed, voice_dropped_ms when it was given up, and voice_fails: true
    that it failed at once. The same file gives the same output, in any process.
    """
    number = 0
    try:
        for number, decision in enumerate(replay(_entries(recording)), start=1):
            payload = decision.payload
            shown = payload.document if payloads else payload.suppression.document
            typer.echo(orjson.dumps({"line": number, "event_id": payload.event_id, "speak": decision.speak, **shown}))
    except InvalidCommand as error:
        typer.echo(f"{recording}:{number + 1}: {error}", err=True)
        raise typer.Exit(2) from None


def _entries(recording: Path) -> Iterator[dict[str, object]]:
    with recording.open("rb") as lines:
        for line in lines:
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                raise InvalidCommand("is not valid JSON") from None
            if not isinstance(entry, dict):
                raise InvalidCommand("must be a JSON object")
            yield cast("dict[str, object]", entry)
