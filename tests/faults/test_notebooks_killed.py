"""A friend is known after the server was killed, and a stranger after erasing: on the wire, over HTTP and in play."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import orjson
import trio

from footlights_actors.sealed.keys import new_key
from tests.kit.paths import ROOT
from tests.kit.served import FOOTLIGHTS, open_peer, open_server, request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kit.served import Served

BOB, ANN = "bobs-token-is-long-enough", "anns-token-is-long-enough"
GAME = """
[server]
ws_port = 0
http_port = 0
trace = "traces"
[notebooks]
folder = "notes"
[models.odo]
kind = "scripted"
script = "tests.kit.memory:innkeeper"
[personas.odo]
text = "You keep an inn."
"""
WORDS = "Bob wants pea soup with marjoram"
DROPPED = "Bob snores like a walrus"


def written(folder: Path) -> dict[str, str]:
    (folder / "game.toml").write_text(GAME)
    tokens = {"FOOTLIGHTS_TOKENS__BOB": BOB, "FOOTLIGHTS_TOKENS__ANN": ANN}
    return {"FOOTLIGHTS_CONTENT_KEYS": new_key(), "PYTHONPATH": str(ROOT), **tokens}


def left_behind(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def played(server: Served, lines: str) -> str:
    done = await trio.run_process(
        [*FOOTLIGHTS, "play", "--url", f"ws://127.0.0.1:{server.ws_port}", "--token-env", "TOKEN"],
        stdin=lines.encode(),
        capture_stdout=True,
        env={**os.environ, "TOKEN": BOB},
    )
    return done.stdout.decode()


async def test_a_friend_is_known_after_a_kill_and_is_a_stranger_after_erasing(tmp_path: Path) -> None:
    environ = written(tmp_path)
    async with open_server(tmp_path, environ=environ) as server:
        first = await played(server, f"Soup?\nnote {WORDS}\ny\nnote {DROPPED}\nn\nnote {DROPPED} twice\n/notes\n")
        assert "Welcome, stranger." in first
        assert f'Odo wants to remember: "{WORDS}"' in first
        assert f"odo: {WORDS}" in first.split("> /notes")[1]
        server.process.kill()
    async with open_server(tmp_path, environ=environ) as server:
        second = await played(server, "Soup?\n")
        assert f"I remember: {WORDS}." in second
        path = "/v1/sessions/bob:page/notes"
        await request(server.http_port, "POST", "/v1/sessions", {"params": {"session_id": "page"}}, token=BOB)
        status, notebook = await request(server.http_port, "GET", path, token=BOB)
        assert status == 200
        assert [(each["words"], "approval_id" in each) for each in notebook["notes"]] == [
            (WORDS, False),
            (f"{DROPPED} twice", True),
        ]
        assert (await request(server.http_port, "GET", path, token=ANN))[0] == 404
        async with open_peer(server.ws_port, token=ANN) as ann:
            session_id = (await ann.ask("start"))["session_id"]
            assert (await ann.ask("notes", session_id=session_id))["notes"] == []
            world = (await ann.ask("world"))["world"]
            assert "bob" not in world["notes"]
        status, notebook = await request(server.http_port, "POST", path, {"act": "erase"}, token=BOB)
        assert (status, notebook) == (200, {"agreed": False, "notes": []})
        status, _ = await request(server.http_port, "POST", path, {"act": "agree"}, token=BOB)
        assert status == 400  # this game asks
        assert "Welcome, stranger." in await played(server, "Soup?\n/notes\n")
        exported = await trio.run_process(
            [*FOOTLIGHTS, "notes", "of", f"ws://127.0.0.1:{server.ws_port}", "--token-env", "TOKEN"],
            capture_stdout=True,
            env={**os.environ, "TOKEN": BOB},
        )
        assert exported.stdout == b""
        server.process.terminate()
        await server.ended()
    remains = left_behind(tmp_path)
    assert b"n-t1-" in remains  # the ledger knows that there was a note
    for words in (WORDS, DROPPED):
        for word in words.encode().split():
            if len(word) > 4:
                assert word not in remains
        assert not any(digest in remains for digest in digests(words))
    await trio.run_process([*FOOTLIGHTS, "audit", str(tmp_path / "game.ledger")], capture_stdout=True)
    assert list((tmp_path / "notes").iterdir()) == []


def digests(words: str) -> list[bytes]:
    """Every digest of the words that anything here could make."""
    from hashlib import blake2b, md5, sha1, sha256

    from blake3 import blake3

    forms = [words.encode(), words.casefold().encode(), orjson.dumps(words), orjson.dumps({"note": words})]
    made: list[Any] = [kind(form) for form in forms for kind in (blake3, sha256, sha1, md5, blake2b)]
    return [each for digest in made for each in (digest.digest(), digest.hexdigest().encode())]


async def test_a_turn_that_was_killed_leaves_no_note(tmp_path: Path) -> None:
    environ = written(tmp_path)
    (tmp_path / "sealed.py").write_text(KILLED)
    done = await trio.run_process(
        [sys.executable, "sealed.py"], cwd=tmp_path, env={**os.environ, **environ}, check=False, capture_stdout=True
    )
    assert done.returncode == -9
    assert b" " in left_behind(tmp_path / "notes")  # the words were sealed
    async with open_server(tmp_path, environ=environ) as server:
        assert "Welcome, stranger." in await played(server, "Soup?\n/notes\n")
        with trio.fail_after(10):
            while list((tmp_path / "notes").iterdir()):  # noqa: ASYNC110 - another process deletes them
                await trio.sleep(0.05)


KILLED = f"""
import os, signal, trio
from pathlib import Path
from footlights import SessionParams, open_stage
from footlights_transports import load_config
import footlights_actors.sealed.notes as notes

config = load_config(Path("game.toml"), os.environ)
sealed = notes.SealedNotes.seal

async def seal_and_die(self, *note):
    await sealed(self, *note)
    os.kill(os.getpid(), signal.SIGKILL)

notes.SealedNotes.seal = seal_and_die

async def main():
    async with open_stage(config.cast, ledger="game.ledger") as stage:
        session = stage.start(SessionParams(session_id="bob:1"))
        await session.finalize(session.begin_turn("note {WORDS}")).wait()

trio.run(main)
"""
