"""The merchant of docs/examples in a real game of Evennia: portal, server, database, and players on telnet.

`make test-hosts` makes the environment and runs this. One game serves all tests, in their order, as a game would.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
from contextlib import closing, suppress
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.hosts

BIN = ROOT / ".venv-hosts/evennia/bin"
PATIENCE = 120.0
"""Seconds until what hangs fails its test. Processes and sockets are the system's, so the clock is real."""
PASSWORD = "a-lantern-for-tests"

SETTINGS = """
from evennia.settings_default import *
SERVERNAME = "lanterns"
TELNET_PORTS, AMP_PORT, TELNET_INTERFACES = [{telnet}], {amp}, ["127.0.0.1"]
WEBSERVER_ENABLED = WEBCLIENT_ENABLED = WEBSOCKET_CLIENT_ENABLED = SSL_ENABLED = SSH_ENABLED = False
SECRET_KEY = "not secret, because this game is on loopback"
AT_SERVER_STARTSTOP_MODULE = ["server.conf.at_server_startstop", "world.killer", "world.evennia_npc"]
NEW_ACCOUNT_REGISTRATION_ENABLED = True
CREATION_THROTTLE_LIMIT = LOGIN_THROTTLE_LIMIT = None
"""

KILLER = '''
"""Kills this process when a commit is durable and not mirrored yet, if a file says so."""
import os, signal
from contextlib import contextmanager
from pathlib import Path
from django.conf import settings
from django.db import transaction
import world.evennia_npc as npc

ORDER = Path(settings.GAME_DIR, "kill")

class Killing:
    @contextmanager
    def atomic(self):
        order = ORDER.read_text() if ORDER.exists() else ""
        ORDER.unlink(missing_ok=True)
        if order == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        with transaction.atomic():
            yield
            if order == "inside":
                os.kill(os.getpid(), signal.SIGKILL)

npc.transaction = Killing()
'''


class Game:
    """A game directory, and the processes that play it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.telnet, amp = free_port(), free_port()
        self._environment = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "EVENNIA_SUPERUSER_USERNAME": "admin",
            "EVENNIA_SUPERUSER_EMAIL": "admin@example.com",
            "EVENNIA_SUPERUSER_PASSWORD": PASSWORD,
        }
        self._run("--init", "game", cwd=folder.parent)
        (folder / "server/conf/settings.py").write_text(SETTINGS.format(telnet=self.telnet, amp=amp))
        (folder / "world/killer.py").write_text(KILLER)
        shutil.copy(ROOT / "docs/examples/evennia_npc.py", folder / "world")
        self._run("migrate")

    def start_anew(self) -> None:
        """Start it for the first time: it sets itself up, and starts its server once more."""
        self.start()
        log = [
            "timeout",
            str(PATIENCE),
            "tail",
            "--follow=name",
            "--retry",
            "--lines=+1",
            str(self.folder / "server/logs/server.log"),
        ]
        with subprocess.Popen(log, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as lines:
            assert lines.stdout is not None
            assert any("restarted in 'reset' mode" in line for line in lines.stdout), self.logs()
            lines.terminate()

    def start(self) -> None:
        # Evennia's launcher waits 10 seconds for its portal, and then leaves the server to the next call.
        assert any("timed out" not in self._run("start") for _ in range(10)), self.logs()

    def stop(self) -> None:
        self._run("stop")

    @property
    def server_pid(self) -> int:
        return int((self.folder / "server/server.pid").read_text())

    def _run(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [BIN / "evennia", *arguments],
            cwd=cwd or self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
            text=True,
        )
        assert done.returncode == 0, f"evennia {arguments}: {done.stdout}{self.logs()}"
        return done.stdout

    def logs(self) -> str:
        return "".join(path.read_text(errors="replace")[-4000:] for path in self.folder.glob("server/logs/*.log"))


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


class Player:
    """A telnet client: text lines, and no options."""

    def __init__(self, game: Game, name: str = "admin") -> None:
        self._game = game
        self.name = name
        self._socket = socket.create_connection(("127.0.0.1", game.telnet), timeout=PATIENCE)
        self._heard = b""
        self.hears("re-show this screen")  # Evennia drops what comes before it has negotiated with the client

    def say(self, line: str) -> None:
        self._socket.sendall(f"{line}\r\n".encode())

    def hears(self, pattern: str) -> str:
        """What comes up to this, and with it."""
        deadline = monotonic() + PATIENCE
        while True:
            text = plain(self._heard)
            if found := re.search(pattern, text):
                self._heard = text[found.end() :].encode()
                return text[: found.end()]
            self._socket.settimeout(max(deadline - monotonic(), 0.01))
            try:
                data = self._socket.recv(4096)
            except TimeoutError:
                data = b""
            assert data, f"{pattern!r} did not come, but {text!r}. {self._game.logs()}"
            self._heard += data

    def does(self, line: str, then: str) -> str:
        self.say(line)
        return self.hears(then)

    def close(self) -> None:
        self._socket.close()


def plain(data: bytes) -> str:
    """Without telnet's commands and without colours."""
    text = re.sub(rb"\xff[\xfb-\xfe].|\xff\xfa.*?\xff\xf0|\xff[\xf0-\xf9]", b"", data, flags=re.DOTALL)
    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode(errors="replace"))


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Generator[Game]:
    if not (BIN / "evennia").exists():
        pytest.fail("There is no environment for Evennia. Run: make test-hosts")
    game = Game(tmp_path_factory.mktemp("evennia") / "game")
    try:
        game.start_anew()
        yield game
    finally:
        with suppress(AssertionError):
            game.stop()


@pytest.fixture(scope="module", autouse=True)
def built(game: Game) -> None:
    with closing(admin(game)) as builder:
        builder.does("create/drop Odo:world.evennia_npc.Merchant", "You create a new Merchant: Odo")
        builder.does("dig Road = road, back", "Created room Road")


def admin(game: Game) -> Player:
    admin = Player(game)
    admin.does(f"connect admin {PASSWORD}", "Limbo")
    return admin


@pytest.fixture
def player(game: Game, request: pytest.FixtureRequest) -> Generator[Player]:
    """A player of this test's own, in Limbo, where Odo is."""
    name = "p" + re.sub("[^a-z]", "", request.node.name)[-20:]
    player = Player(game, name)
    player.does(f"create {name} {PASSWORD}", "intended")
    player.does("yes", "created")
    player.does(f"connect {name} {PASSWORD}", "Limbo")
    yield player
    player.close()


def told(game: Game, expression: str) -> str:
    """What the game says when its administrator evaluates this. `npc` is the example."""
    with closing(admin(game)) as asking:
        asking.say(f"py import world.evennia_npc as npc; self.msg('<' * 3 + repr({expression}) + '>' * 3)")
        return asking.hears("<<<.*>>>").rpartition("<<<")[2].removesuffix(">>>")


def becomes(game: Game, expression: str, expected: str) -> None:
    """Ask until the answer is this."""
    deadline = monotonic() + PATIENCE
    while (answer := told(game, expression)) != expected:
        assert monotonic() < deadline, f"{expression} is {answer}"


def owns(player: Player) -> str:
    """What Evennia's own database says that the player has."""
    found = f"__import__('evennia').search_object('{player.name}')[0].db"
    return f"({found}.coins, {found}.lanterns)"


def test_he_talks_sentence_by_sentence_and_can_be_interrupted(game: Game, player: Player) -> None:
    player.does("talk Good evening.", 'Odo says, "The road is long."')
    player.hears('Odo says, "I have walked')
    unheard = player.does("talk A lantern, please.", "Odo breaks off.")
    assert unheard.count("I have walked") < 39
    player.hears('Odo says, "A lantern it is.')


def test_what_he_sells_is_in_the_database_of_the_game_and_what_he_cannot_sell_is_not(
    game: Game, player: Player
) -> None:
    player.does("talk A lantern, please.", "your word")
    becomes(game, owns(player), "(2, 1)")
    player.does("talk Another lantern, please.", "Nothing is sold. There is too little in the purse.")
    assert told(game, owns(player)) == "(2, 1)"


def test_who_leaves_the_room_is_not_talked_to(game: Game, player: Player) -> None:
    player.does("talk Good evening.", "I have walked")
    player.does("road", "Odo breaks off.")
    becomes(game, "npc.Host.talks", "{}")
    player.does("back", "Limbo")
    player.does("talk A lantern, please.", "your word")


def test_who_leaves_the_game_is_not_talked_to(game: Game, player: Player) -> None:
    player.does("talk Good evening.", "I have walked")
    player.close()
    becomes(game, "npc.Host.talks", "{}")
    becomes(game, "npc.Host.stage.call(lambda stage: stage.statistics().open_turns)", "0")


def test_a_reload_interrupts_him_and_he_talks_on(game: Game, player: Player) -> None:
    player.does("talk A lantern, please.", "your word")
    with closing(admin(game)) as builder:
        player.does("talk Good evening.", "I have walked")
        builder.say("reload")
        player.hears("Odo breaks off.")
        player.hears("Server restarted")
    player.does("talk Another lantern, please.", "Nothing is sold.")
    assert told(game, owns(player)) == "(2, 1)"


@pytest.mark.parametrize("moment", ["before", "inside"])
def test_a_kill_between_commit_and_mirror_loses_nothing(game: Game, player: Player, moment: str) -> None:
    (game.folder / "kill").write_text(moment)
    server = os.pidfd_open(game.server_pid)
    player.say("talk A lantern, please.")
    assert select.select([server], [], [], PATIENCE)[0], "the server was not killed"
    os.close(server)
    game.start()
    becomes(game, owns(player), "(2, 1)")  # without another turn
    assert "{'coins': 2, 'lanterns': 1}" in told(game, "npc.Host.stage.world")


def test_the_ledger_of_the_game_is_sound_after_all_this(game: Game) -> None:
    game.stop()
    with SqliteReader(game.folder / "server/footlights.ledger") as ledger:
        assert audit(ledger).ok
