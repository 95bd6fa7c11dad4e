"""The process of a local model, from inside, with an engine that misbehaves on cue."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from footlights_actors.models.local import worker as local_worker
from footlights_actors.models.local.worker import Line, connect, run, serve
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator

FAKE_ENGINE = ROOT / "tests/kit/models/fake_engine/xllamacpp.py"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The fake engine, in the place of the real one."""
    members = runpy.run_path(str(FAKE_ENGINE))
    module = type(sys)("xllamacpp")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    return members


@pytest.fixture
def interrupts() -> Generator[None]:
    """The worker gives up SIGINT; the tests want it back."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "some.gguf"
    file.write_bytes(b"GGUFload")
    return file


@contextmanager
def serving(fake: dict[str, Any], weights: Path) -> Generator[tuple[Line, socket.socket]]:
    """The near end of a line that is served by a thread; the thread has ended with the block."""
    near, far = socket.socketpair()
    params = fake["CommonParams"]()
    params.model.path = str(weights)
    thread = threading.Thread(target=serve, args=(fake["Server"](params), Line(far)))
    with near, far:
        thread.start()
        try:
            yield Line(near), near
        finally:
            near.close()
            thread.join()


def _request(said: str) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": said}]}).encode()


def _answers(line: Line) -> list[bytes]:
    answers: list[bytes] = []
    while answer := line.receive():
        answers.append(answer)
    return answers


def test_a_request_is_answered_by_chunks_and_then_by_nothing(fake: dict[str, Any], weights: Path) -> None:
    with serving(fake, weights) as (line, _):
        line.send(_request("Hello"))
        answers = _answers(line)
        assert b"Good " in answers[0]
        assert b"usage" in answers[-1]


def test_a_word_meanwhile_ends_the_work(fake: dict[str, Any], weights: Path) -> None:
    with serving(fake, weights) as (line, _):
        line.send(_request("talk for ever"))
        assert line.receive()
        line.send(b"")
        _answers(line)
        line.send(_request("Hello"))
        assert b"Good " in _answers(line)[0]


def test_a_stop_that_comes_with_its_request_is_not_lost(fake: dict[str, Any], weights: Path) -> None:
    with serving(fake, weights) as (line, near):
        request = _request("talk for ever")
        near.sendall(local_worker.HEAD.pack(len(request)) + request + local_worker.HEAD.pack(0))
        assert len(_answers(line)) == 0


def test_a_stop_that_comes_too_late_changes_nothing(fake: dict[str, Any], weights: Path) -> None:
    with serving(fake, weights) as (line, _):
        line.send(b"")
        line.send(_request("Hello"))
        assert b"Good " in _answers(line)[0]


def test_an_error_of_the_engine_is_reported_without_its_message(fake: dict[str, Any], weights: Path) -> None:
    with serving(fake, weights) as (line, _):
        line.send(_request("throw"))
        (answer,) = _answers(line)
        assert set(json.loads(answer)) == {"error"}
        assert b"secret" not in answer


def test_the_work_ends_when_the_other_end_is_gone(fake: dict[str, Any], weights: Path) -> None:
    with serving(fake, weights) as (line, _):
        line.send(_request("talk for ever"))
        assert line.receive()


class _Deaf(Line):
    """It never notices that the other end is gone, before it speaks."""

    def has_input(self) -> bool:
        return False


def test_the_work_ends_when_no_consumer_takes_the_chunks(fake: dict[str, Any], weights: Path) -> None:
    near, far = socket.socketpair()
    params = fake["CommonParams"]()
    params.model.path = str(weights)
    with near, far:
        Line(near).send(_request("talk for ever"))
        near.shutdown(socket.SHUT_RD)
        near.shutdown(socket.SHUT_WR)
        serve(fake["Server"](params), _Deaf(far))


def test_half_a_message_is_the_end() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.sendall(local_worker.HEAD.pack(10) + b"half")
        near.shutdown(socket.SHUT_WR)
        assert Line(far).receive() is None


def _settings(weights: Path, port: int) -> dict[str, Any]:
    return {
        "path": str(weights),
        "slots": 2,
        "context_tokens": 64,
        "threads": 1,
        "batch_tokens": 32,
        "port": port,
        "secret": "s" * 64,
    }


@pytest.mark.usefixtures("fake", "interrupts")
def test_it_connects_its_lines_serves_and_ends_with_its_starter(weights: Path) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reading, writing = os.pipe()

        def start() -> None:
            near = [listener.accept()[0] for _ in range(2)]
            for connection in near:
                heard.append(connection.recv(64, socket.MSG_WAITALL))
                heard.append(connection.recv(4, socket.MSG_WAITALL))
            os.close(writing)
            for connection in near:
                connection.close()

        starter = threading.Thread(target=start)
        starter.start()
        with os.fdopen(reading, "rb") as standard_input:
            assert run(_settings(weights, listener.getsockname()[1]), standard_input) == 0
        starter.join()
    assert heard == [b"s" * 64, b"\0\0\0\0"] * 2
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.usefixtures("fake")
def test_weights_that_cannot_be_loaded_have_their_exit_code(weights: Path) -> None:
    weights.write_bytes(b"GGUFrefuse")
    with socket.create_server(("127.0.0.1", 0)) as listener, Path(os.devnull).open("rb") as nothing:
        assert run(_settings(weights, listener.getsockname()[1]), nothing) == local_worker.NOT_LOADED


@pytest.mark.parametrize(
    ("error", "code"),
    [(ModuleNotFoundError, local_worker.ENGINE_MISSING), (ImportError, local_worker.ENGINE_BROKEN)],
)
def test_an_engine_that_cannot_be_had_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, weights: Path, error: type[ImportError], code: int
) -> None:
    def fail(name: str) -> None:
        raise error(name)

    monkeypatch.setattr(local_worker, "import_module", fail)
    with Path(os.devnull).open("rb") as nothing:
        assert run(_settings(weights, 0), nothing) == code


def test_a_line_begins_with_the_secret() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = connect(listener.getsockname()[1], "s" * 64)
        near, _ = listener.accept()
        with near:
            assert near.recv(64, socket.MSG_WAITALL) == b"s" * 64
            line.close()
