"""`footlights laws` on Server-Sent Events, and on files that are no recordings."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import orjson
import pytest
import trio

from footlights import wire
from footlights_transports.cli.recordings import Recording
from tests.kit.command import footlights
from tests.kit.served import open_server, request

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [orjson.dumps({"event_type": "token_delta", "n": n}) for n in range(3)]
SSE = b"id: a\n\n: alive\n\nid: b\ndata: %b\n\nid: c\ndata:%b\n\nevent: ended\ndata: {}\n\nid: d\ndata: %b\n\n"


def read(text: bytes) -> list[bytes]:
    return list(Recording(text.splitlines(keepends=True), "event_type"))


def test_lines_of_json_stay_as_they_are() -> None:
    lines = [each + b"\n" for each in (*EVENTS, b"no json", b"")]
    assert read(b"".join(lines)) == lines


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("head", [b"", b"\n", b"HTTP/1.1 200 \ncontent-type: text/event-stream\nvary: origin\n\n"])
def test_server_sent_events_give_their_data_without_notices_and_comments(head: bytes, ends: bytes) -> None:
    assert read((head + SSE % tuple(EVENTS)).replace(b"\n", ends)) == EVENTS


def test_a_file_without_any_event_is_no_recording_however_short() -> None:
    recording = Recording([b"SQLite format 3\n"], "event_type")
    assert (len(list(recording)), recording.strange_line) == (1, 1)
    empty = Recording([], "event_type")
    assert (list(empty), empty.strange_line) == ([], None)


def test_an_event_of_several_lines_is_one_and_a_cut_one_is_none() -> None:
    assert read(b'data: {"event_type":\ndata: "x"}\n\ndata: {"event_ty') == [b'{"event_type":\n"x"}']


def test_the_reading_stops_after_some_lines_in_a_row_that_are_not_events() -> None:
    text = b"<html>\n<head>\n" + EVENTS[0] + b"\n" + b"<p>Good evening.</p>\n" * 1_000
    recording = Recording(text.splitlines(keepends=True), "event_type")
    assert len(list(recording)) == 3 + 5
    assert recording.strange_line == 8
    recording = Recording((EVENTS[0] + b"\n<p>\n").splitlines(keepends=True) * 100, "event_type")
    assert (len(list(recording)), recording.strange_line) == (200, None)


# -- the command


@pytest.mark.parametrize(
    "text", ["<html>\n", "not json\n", '{"name": "a package"}\n', "[1, 2]\n", "2026-05-01 error: x\n"]
)
def test_a_file_that_is_no_recording_is_refused_in_a_few_lines(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").write_text(text * 10_000)
    assert footlights(monkeypatch, "laws", str(tmp_path / "page.html")) == 1
    shown, told = capsys.readouterr()
    assert len(shown.splitlines()) <= 6
    assert told == (
        "Stopped at line 5: it is not a recording. A recording has one event as JSON a line, or is a stream of "
        "Server-Sent Events as curl -N saves it.\n"
    )


def test_dexi_recordings_may_be_server_sent_events_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "footlights_transports", "run", "--json", "Good evening."],
        capture_output=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    saved = [b"id: %d\nevent: %b\ndata: %b\n\n" % (n, orjson.loads(x)["type"].encode(), x) for n, x in enumerate(lines)]
    (tmp_path / "run.txt").write_bytes(b"".join(saved))
    assert footlights(monkeypatch, "laws", "--dialect", "dexi", str(tmp_path / "run.txt")) == 0
    assert capsys.readouterr().out == f"{len(lines)} events, 1 run: lawful\n"


async def test_a_stream_that_curl_saved_is_lawful(tmp_path: Path) -> None:
    """With the bytes of a real server, read as curl reads them: with and without the head of the answer."""
    async with open_server(tmp_path, "--ws-port", "0", "--http-port", "0") as server:
        port = server.http_port
        _, started = await request(port, "POST", "/v1/sessions")
        session = f"/v1/sessions/{started['session_id']}"
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(f"GET {session}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            saved = await stream.receive_some()
            assert (await request(port, "POST", f"{session}/turns", {"input": "Hello"}))[0] == 202
            while b"commit_final" not in saved or not saved.endswith(b"\n\n\r\n"):
                saved += await stream.receive_some()
    head, _, chunks = saved.partition(b"\r\n\r\n")
    body = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        body, chunks = body + chunks[: int(size, 16)], chunks[int(size, 16) + 2 :]
    for text in (body, head + b"\r\n\r\n" + body):
        (tmp_path / "events.txt").write_bytes(text)
        command = [sys.executable, "-m", "footlights_transports", "laws", str(tmp_path / "events.txt")]
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.endswith(b" events, 1 turn: lawful\n")
    data = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
    assert [wire.decode(each).seq for each in data] == sorted(wire.decode(each).seq for each in data)
