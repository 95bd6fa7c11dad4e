"""Source of settings: a TOML file, overridden by the environment, overridden by the command line.

    FOOTLIGHTS_SERVER__WS_PORT=7700     is     [server]
                                               ws_port = 7700

A value from the environment is text if the setting is text, and is parsed as TOML otherwise. What does not fit is
recorded as a problem, and the rest is read all the same. A problem never repeats a value, which may be a misplaced
secret.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from os.path import exists, isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from attrs import frozen

from footlights.errors import FootlightsError, InvalidCommand, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from footlights_transports.config.schema import Kind, Setting

_T = TypeVar("_T")

KeyPath: TypeAlias = tuple[str, ...]
PREFIX = "FOOTLIGHTS_"
SEPARATOR = "__"
_SECRET = "tokens"

# tomllib raises these also for a number of thousands of digits, and for thousands of brackets.
_NOT_TOML = (ValueError, RecursionError)


@frozen
class Problem:
    """A problem with a setting, and the place where it was set."""

    where: str
    line: int
    sentence: str

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.sentence}"


class ConfigError(FootlightsError):
    """Settings that cannot be used: all of their problems, one on each line."""

    code = "invalid_config"

    def __init__(self, problems: Iterable[Problem], tracebacks: Iterable[str] = ()) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: each.line))
        self.tracebacks = tuple(tracebacks)
        """Of the modules that cannot be imported, for development mode; none where there are tokens."""
        super().__init__("\n".join(map(str, self.problems)))


@frozen
class FromText:
    """A value of an environment variable, which may be text or TOML."""

    text: str

    def parsed(self) -> object:
        try:
            read = tomllib.loads(f"value = {self.text}")
        except _NOT_TOML:
            return self.text
        return read["value"] if len(read) == 1 else self.text


class Source:
    """All settings as one tree. Raises `ConfigError` if the file cannot be read."""

    def __init__(
        self, file: Path | None, environ: Mapping[str, str], options: Mapping[KeyPath, object] | None = None
    ) -> None:
        self.file = file
        self.environ = environ
        self.problems: list[Problem] = []
        self.broken_modules: set[str] = set()
        """The modules that cannot be imported, each of which is a problem once."""
        self.tracebacks: list[str] = []
        """How they failed, with messages: for the developer's own screen."""
        self.chat_agent: str | None = None
        """The persona of the cast that answers where a request names none; None means the first."""
        self.tree: dict[str, Any] = {}
        self._text = ""
        self._origins: dict[KeyPath, str] = {}
        if file is not None:
            self._text, self.tree = _loaded(file)
        for variable, text in sorted(environ.items()):
            if variable.startswith(PREFIX) and SEPARATOR in variable:
                path = tuple(variable.removeprefix(PREFIX).lower().split(SEPARATOR))
                self._lay_over(self._as_in_file(path), FromText(text), variable)
        for path, value in (options or {}).items():
            self._lay_over(path, value, f"--{path[-1].replace('_', '-')}")

    def complain(self, path: KeyPath, sentence: str) -> None:
        """Record a problem with a setting. The sentence continues after the name of the setting."""
        self.problems.append(self.problem(path, sentence))

    def problem(self, path: KeyPath, sentence: str) -> Problem:
        """A problem with a setting, which is not recorded: for what is only warned of."""
        where, line = self._place(path)
        return Problem(where, line, f"{'.'.join(path)} {sentence}")

    def read(self, path: KeyPath, kind: Kind) -> Any:
        """A value; None and a problem if it does not fit."""
        value = self._at(path)
        if isinstance(value, FromText):
            value = value.text if kind.fits(value.text) else value.parsed()
        if kind.fits(value):
            return value
        self.complain(path, f"must be {kind.allowed}.")
        return None

    def text(self, path: KeyPath) -> str:
        """A value if it is text; else an empty text, without a problem."""
        value = self._at(path)
        value = value.text if isinstance(value, FromText) else value
        return value if isinstance(value, str) else ""

    def plain(self, path: KeyPath) -> Any:
        """A value of any kind; None and a problem if it is nested too deeply."""
        try:
            return _plain(self._at(path))
        except RecursionError:
            self.complain(path, "has too many nested tables.")
            return None

    def table(self, path: KeyPath) -> dict[str, Any]:
        """A table, which is empty if it is not set; empty, with a problem, if it is not a table."""
        value = self._at(path)
        if value is None or isinstance(value, dict):
            return cast("dict[str, Any]", value or {})
        self.complain(path, f"must be a table: [{'.'.join(path)}]")
        return {}

    def is_set(self, path: KeyPath) -> bool:
        return _has(self.tree, path)

    def is_in_file(self, path: KeyPath) -> bool:
        return path not in self._origins

    def resolve(self, path: KeyPath, named: str) -> Path:
        """The path that a setting names. Settings in a file are relative to that file."""
        try:
            resolved = Path(named).expanduser()
        except RuntimeError:
            self.complain(path, "names the home of a user that does not exist on this machine.")
            resolved = Path(named)
        return self.file.parent / resolved if self.file is not None and self.is_in_file(path) else resolved

    def folder(self, path: KeyPath, named: str) -> Path:
        """The folder that a setting names, which need not exist; a problem if it is something else."""
        folder = self.resolve(path, named)
        if _exists(folder) and not is_folder(folder):
            self.complain(path, f"names {folder}, which is not a folder.")
        return folder

    # -- sections

    def section(self, path: KeyPath, settings: Collection[Setting], *, beside: tuple[str, ...] = ()) -> dict[str, Any]:
        """The values of a section that are set and fit, by name. The names in `beside` are read elsewhere."""
        table, known = self.table(path), [*beside, *(each.name for each in settings)]
        for name in table:
            if name not in known:
                self.complain_unknown((*path, name), known)
        for setting in settings:
            if setting.required and setting.name not in table:
                self.complain(path, f"needs {setting.name}, {setting.kind.allowed}.")
        read = {each.name: self.read((*path, each.name), each.kind) for each in settings if each.name in table}
        return {name: value for name, value in read.items() if value is not None}

    def checked(self, path: KeyPath, settings: Collection[Setting], make: Callable[..., _T]) -> _T:
        """An instance of a class that checks its values, made of those values of the section that it accepts."""
        return self.accepted(path, self.section(path, settings), make)

    def accepted(self, path: KeyPath, values: Mapping[str, Any], make: Callable[..., _T]) -> _T:
        """The same, of values that were read before."""
        accepted: dict[str, Any] = {}
        for name, value in values.items():
            try:
                make(**{name: value})
            except (InvalidCommand, RegistrationError) as error:
                self.complain((*path, name), f"is refused: {error}")
            else:
                accepted[name] = value
        return make(**accepted)

    def complain_unknown(self, path: KeyPath, known: Collection[str]) -> None:
        close = get_close_matches(path[-1], known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        self.complain(path, f"is not a setting.{hint} There are: {', '.join(known)}.")

    # -- inside

    def _at(self, path: KeyPath) -> Any:
        value: Any = self.tree
        for name in path:
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        return value

    def _as_in_file(self, path: KeyPath) -> KeyPath:
        """The path in the case that the file uses: variables are upper case."""
        spelled: list[str] = []
        table: Any = self.tree
        for name in path:
            known = cast("dict[str, Any]", table) if isinstance(table, dict) else {}
            alike = [each for each in known if each.lower() == name]
            spelled.append(name if name in known or not alike else alike[0])
            table = known.get(spelled[-1])
        return tuple(spelled)

    def _lay_over(self, path: KeyPath, value: object, origin: str) -> None:
        table = self.tree
        for name in path[:-1]:
            below = table.setdefault(name, {})
            if not isinstance(below, dict):
                # The names of tokens may be tokens.
                where, what = ("environment", path[0]) if path[0] == _SECRET else (origin, ".".join(path))
                self.problems.append(Problem(where, 0, f"{what} is inside of something that is not a table."))
                return
            table = cast("dict[str, Any]", below)
        table[path[-1]] = value
        self._origins[path] = origin

    def _place(self, path: KeyPath) -> tuple[str, int]:
        for length in range(len(path), 0, -1):
            if path[:length] in self._origins:
                return self._origins[path[:length]], 0
        if self.file is None:
            inside = [origin for each, origin in self._origins.items() if each[: len(path)] == path]
            return (inside[0] if inside else "settings"), 0
        return str(self.file), line_of(self._text, path)


def line_of(text: str, path: KeyPath) -> int:
    """The line on which a key of a TOML text is set; that of the nearest table around it if it is not set."""
    lines = [f"{line}\n" for line in text.split("\n")]
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        return 0
    while path and not _has(tree, path):
        path = path[:-1]
    if not path:
        return 0
    # Of the prefixes that can be parsed, the shorter ones lack the key and the longer ones have it: bisect.
    low, high = 0, len(lines)
    while high - low > 1:
        middle, prefix = _prefix_near((low + high) // 2, low, high, lines)
        if prefix is None:
            break
        low, high = (low, middle) if _has(prefix, path) else (middle, high)
    return low + 1


def _prefix_near(middle: int, low: int, high: int, lines: list[str]) -> tuple[int, dict[str, Any] | None]:
    """The longest prefix of up to `middle` lines that can be parsed, or else the shortest one after it."""
    for end in [*range(middle, low, -1), *range(middle + 1, high)]:
        try:
            return end, tomllib.loads("".join(lines[:end]))
        except _NOT_TOML:
            continue
    return high, None


def _has(tree: object, path: KeyPath) -> bool:
    for name in path:
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = cast("dict[str, object]", tree)[name]
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, FromText):
        return value.parsed()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    return value


def _loaded(file: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and what it parses to. Raises `ConfigError`."""
    text, line = "", 0
    try:
        text = file.read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a mark
        return text, tomllib.loads(text)
    except OSError as error:
        sentence = f"cannot be read: {error.strerror}."
    except UnicodeDecodeError:
        sentence = "is not UTF-8 text."
    except RecursionError:
        sentence = "has too many nested brackets."
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).partition(" (at ")
        digits = place.removeprefix("line ").partition(",")[0]
        line = int(digits) if digits.isdigit() else len(text.splitlines())
        sentence = f"This is not TOML: {reason}."
    except ValueError:
        sentence = "has a number with too many digits."
    raise ConfigError([Problem(str(file), line, sentence)])


def _exists(path: Path) -> bool:
    return exists(path)  # noqa: PTH110 - Path.exists raises for a path that is too long or forbidden


def is_folder(path: Path) -> bool:
    return isdir(path)  # noqa: PTH112 - as above
