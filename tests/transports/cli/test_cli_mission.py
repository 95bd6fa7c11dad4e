"""Command `footlights mission replay`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from footlights_transports.cli.commands import app
from footlights_transports.views.mission.pure.recheck import replay

if TYPE_CHECKING:
    from pathlib import Path

HEARD = {"context_tier": 1, "session_state": "active", "classification": "critical"}
SEQUENCE: list[dict[str, Any]] = [
    {"text": "Fire.", **HEARD, "policy_ts_ms": 1_000},
    {"text": "FIRE!", **HEARD, "policy_ts_ms": 4_000},
    {"text": "Flood.", **HEARD, "voice_fails": True, "event_id": "flood"},
    {"text": "Hello."},
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    file = tmp_path / "callouts.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in SEQUENCE))
    return file


def replayed(file: Path, *options: str) -> tuple[int, list[dict[str, Any]], str]:
    result = CliRunner().invoke(app, ["mission", "replay", str(file), *options])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_each_line_is_decided_and_printed_without_its_text(recording: Path) -> None:
    status, lines, _ = replayed(recording)
    assert status == 0
    assert [(each["line"], each["event_id"], each["speak"], each["reason"], each["cooldown_ms"]) for each in lines] == [
        (1, "event-000001", True, None, 0),
        (2, "event-000002", False, "dedupe_cooldown", 7_000),
        (3, "flood", False, "voice_backend_error", 0),
        (4, "event-000004", False, "context_ineligible", 0),
    ]
    assert lines[0]["dedupe_key"] == lines[1]["dedupe_key"]
    assert not any("Fire" in json.dumps(each) for each in lines)


def test_payloads_are_printed_with_the_option(recording: Path) -> None:
    _, lines, _ = replayed(recording, "--payloads")
    documents = [each.payload.document for each in replay(SEQUENCE)]
    assert [{name: each[name] for name in documents[0]} for each in lines] == documents


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_file_gives_the_same_output_in_any_process(recording: Path, seed: str) -> None:
    command = [sys.executable, "-m", "footlights_transports", "mission", "replay", str(recording)]
    result = subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
    )
    assert [json.loads(line) for line in result.stdout.splitlines()] == replayed(recording)[1]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nothing", "is not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"text": ""}', "text: must not be empty"),
        ('{"text": "x", "voice_fails": 1}', "voice_fails: must be true or false"),
        (
            '{"text": "x", "voice_failed_ms": 1, "voice_dropped_ms": 1}',
            "voice_dropped_ms: a voice that failed was not dropped",
        ),
    ],
)
def test_an_invalid_line_is_named(recording: Path, line: str, sentence: str) -> None:
    with recording.open("a") as file:
        file.write(f"{line}\n")
    status, lines, complaint = replayed(recording)
    assert (status, len(lines)) == (2, 4)
    assert complaint == f"{recording}:5: {sentence}\n"


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "callouts.jsonl"
    lines = [json.dumps(each) for each in SEQUENCE]
    file.write_text("\n" + "\n  \n".join(lines) + "\n\n")
    status, decided, _ = replayed(file)
    assert status == 0
    assert [each["line"] for each in decided] == [2, 4, 6, 8]
    file.write_text(f"\n{lines[0]}\n\nnothing\n")
    status, decided, complaint = replayed(file)
    assert (status, len(decided), complaint) == (2, 1, f"{file}:4: is not valid JSON\n")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert replayed(tmp_path / "nothing")[0] == 2
