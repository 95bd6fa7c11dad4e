"""Worlds of the settings: which there are beside the main one, what they are made of, and how many clients may add.

    [worlds]
    names = ["harbour", "castle"]
    max_on_demand = 100

    [worlds.templates]
    castle = "castle.toml"
    "arena-*" = "arena.toml"

A template is a settings file with another cast. A world without one has the cast of the main world. Each has a ledger
of its own: a file, or a world in the database of the main one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from footlights.authority.ledger.address import LedgerUrl
from footlights.errors import Busy
from footlights_transports.config.schema import WORLDS
from footlights_transports.config.source import ConfigError
from footlights_transports.errors import UnknownWorld
from footlights_transports.worlds.names import MAIN, RULE, check_pattern, is_world_name, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from footlights import Cast
    from footlights.authority.ledger.names import LedgerName
    from footlights_transports.config.config import Config
    from footlights_transports.config.source import Source

_SUFFIX = ".ledger"
_OF_THE_SERVER = ("server", "tokens", "users", "wire", "worlds")
"""Sections that hold for all worlds, and so have no place in a template."""


@frozen(kw_only=True)
class WorldsConfig:
    """The worlds that a server may open beside the main one."""

    folder: Path
    """Where their ledgers are."""
    names: Collection[str] = ()
    max_on_demand: int = 0
    max_open: int = 1_000
    idle_seconds: float = 300.0
    templates: Mapping[str, Config] = field(factory=dict[str, "Config"])
    database: LedgerUrl | None = None
    """The database that has all worlds, if the main one is in a database."""

    def ledger_of(self, name: str) -> LedgerName:
        """The ledger of a world."""
        return self._file_of(name) if self.database is None else self.database.of_world(name)

    def make_folder(self) -> None:
        """Make the folder of the ledgers, unless they are in a database."""
        if self.database is None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def _file_of(self, name: str) -> Path:
        return self.folder / f"{name}{_SUFFIX}"

    def config_of(self, name: str) -> Config | None:
        """The settings of the template of this world, if it has one."""
        best = None if name == MAIN else matching(name, list(self.templates))
        return None if best is None else self.templates[best]

    def exists(self, name: str) -> bool:
        """Whether there is a world of that name: the settings name it, or it was created once."""
        return name == MAIN or name in self.names or (self.database is None and self._file_of(name).exists())

    def check_may_create(self, name: str, opening: Collection[str], *, may_create: bool) -> None:
        """Raises `UnknownWorld` if no client may create that world, and `Busy` if there are too many."""
        if self.max_on_demand == 0 or (self.templates and self.config_of(name) is None):
            raise UnknownWorld("There is no world of that name.")
        if not may_create:
            raise UnknownWorld("There is no world of that name yet: a POST or a WebSocket to it creates it.")
        kept = {each.stem for each in self.folder.glob(f"*{_SUFFIX}")} | set(opening)
        if len(kept - {MAIN, *self.names}) >= self.max_on_demand:
            raise Busy(f"There are {self.max_on_demand} worlds that clients have created (worlds.max_on_demand).")


def read_worlds(
    source: Source, ledger: LedgerName, load: Callable[[Path, Cast | None], Config], running: WorldsConfig | None
) -> WorldsConfig:
    """The worlds of the settings. `load` reads a template; the casts of `running` are not made again."""
    given = source.section(("worlds",), WORLDS, beside=("templates",))
    for name in given.get("names", ()):
        if not is_world_name(name) or name == MAIN:
            source.complain(
                ("worlds", "names"), f"has a name that cannot be one: a name has {RULE}, and is not {MAIN}."
            )
    database = ledger if isinstance(ledger, LedgerUrl) else None
    if database is not None and given.get("max_on_demand"):
        source.complain(("worlds", "max_on_demand"), "is for ledgers in files: name the worlds of a database in names.")
    beside = Path("game.worlds") if isinstance(ledger, LedgerUrl) else ledger.with_suffix(".worlds")
    folder = source.folder(("worlds", "folder"), given["folder"]) if "folder" in given else beside
    templates: dict[str, Config] = {}
    for pattern in source.table(("worlds", "templates")):
        known = None if running is None else running.templates.get(pattern)
        config = _template(source, pattern, load, known)
        if config is not None:
            templates[pattern] = config
    given |= {"folder": folder, "templates": templates, "database": database}
    worlds = WorldsConfig(**given)
    if any(worlds.ledger_of(name) == ledger for name in worlds.names):
        source.complain(
            ("worlds", "names"), "has a name whose ledger is that of the main world: give that one another."
        )
    return worlds


def _template(
    source: Source, pattern: str, load: Callable[[Path, Cast | None], Config], running: Config | None
) -> Config | None:
    place = ("worlds", "templates", pattern)
    file: Any = source.plain(place)
    if not check_pattern(pattern):
        source.complain(place, f"is for no world: a name has {RULE}, and may end in a star here.")
    elif not isinstance(file, str) or not file:
        source.complain(place, "must be the path of a settings file.")
    else:
        try:
            config = load(source.resolve(place, file), None if running is None else running.cast)
        except ConfigError as error:
            source.problems += error.problems
            return None
        for setting in config.settings:
            if setting.partition(".")[0] in _OF_THE_SERVER:
                source.complain(place, f"names {file}, which sets {setting}: that holds for the whole server.")
        return config
    return None
