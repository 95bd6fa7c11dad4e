"""Where settings come from, laid over each other: a TOML file, then the environment, then the command line.

    FOOTLIGHTS_SERVER__WS_PORT=7700     is     [server]
                                               ws_port = 7700

A value from the environment is text if the setting is text, and is read as TOML otherwise. Values are never repeated
in what is said about them: one of them may be a secret in the wrong place.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import frozen

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights_transports.config.schema import Kind

KeyPath: TypeAlias = tuple[str, ...]
PREFIX = "FOOTLIGHTS_"
SEPARATOR = "__"
_SECRET = "tokens"

# What tomllib really raises: also for a number of thousands of digits, and for thousands of brackets.
_NOT_TOML = (ValueError, RecursionError)


@frozen
class Problem:
    """Something that is wrong with a setting, and where it was set."""

    where: str
    line: int
    sentence: str

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.sentence}"


class ConfigError(FootlightsError):
    """Settings that cannot be used: all that is wrong with them, one sentence a line."""

    code = "invalid_config"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: each.line))
        super().__init__("\n".join(map(str, self.problems)))


@frozen
class FromText:
    """A value that came as text and may be meant as TOML."""

    text: str

    def meant(self) -> object:
        try:
            read = tomllib.loads(f"value = {self.text}")
        except _NOT_TOML:
            return self.text
        return read["value"] if len(read) == 1 else self.text


class Source:
    """All that was set, as one tree. Raises `ConfigError` if the file cannot be read at all."""

    def __init__(
        self, file: Path | None, environ: Mapping[str, str], options: Mapping[KeyPath, object] | None = None
    ) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.tree: dict[str, Any] = {}
        self._text = ""
        self._origins: dict[KeyPath, str] = {}
        if file is not None:
            self._text = _text_of(file)
            self.tree = _parsed(file, self._text)
        for variable, text in sorted(environ.items()):
            if variable.startswith(PREFIX) and SEPARATOR in variable:
                path = tuple(variable.removeprefix(PREFIX).lower().split(SEPARATOR))
                self._lay_over(self._as_in_file(path), FromText(text), variable)
        for path, value in (options or {}).items():
            self._lay_over(path, value, f"--{path[-1].replace('_', '-')}")

    def complain(self, path: KeyPath, sentence: str) -> None:
        """Something is wrong with what stands there. The sentence begins after the name."""
        where, line = self._place(path)
        self.problems.append(Problem(where, line, f"{'.'.join(path)} {sentence}"))

    def read(self, path: KeyPath, kind: Kind) -> Any:
        """What stands there; None if it does not fit, which is complained of."""
        value = self._at(path)
        if isinstance(value, FromText):
            value = value.text if kind.fits(value.text) else value.meant()
        if kind.fits(value):
            return value
        self.complain(path, f"must be {kind.allowed}.")
        return None

    def text(self, path: KeyPath) -> str:
        """What stands there, if it is text; else nothing, and nothing is said of it."""
        value = self._at(path)
        value = value.text if isinstance(value, FromText) else value
        return value if isinstance(value, str) else ""

    def plain(self, path: KeyPath) -> Any:
        """What stands there, whatever it is; None if it is too deep, which is complained of."""
        try:
            return _plain(self._at(path))
        except RecursionError:
            self.complain(path, "has too many tables inside of each other.")
            return None

    def table(self, path: KeyPath) -> dict[str, Any]:
        """The table that stands there; empty if there is none, or if it is none, which is complained of."""
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
        """The path that a setting names: in a file, relative to that file."""
        try:
            resolved = Path(named).expanduser()
        except RuntimeError:
            self.complain(path, "names the home of a user whom this machine does not know.")
            resolved = Path(named)
        return self.file.parent / resolved if self.file is not None and self.is_in_file(path) else resolved

    def _at(self, path: KeyPath) -> Any:
        value: Any = self.tree
        for name in path:
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        return value

    def _as_in_file(self, path: KeyPath) -> KeyPath:
        """The same path as the file spells it: variables have no small letters."""
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
                self.problems.append(Problem(where, 0, f"{what} stands inside of what is no table."))
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
    """The line on which a key of a TOML text is set; that of the nearest table around it if it is not there."""
    lines = [f"{line}\n" for line in text.split("\n")]
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        return 0
    while path and not _has(tree, path):
        path = path[:-1]
    if not path:
        return 0
    # The beginnings of a text that can be parsed either have the key or not, and none after the first that has.
    low, high = 0, len(lines)
    while high - low > 1:
        middle, begun = _beginning_near((low + high) // 2, low, high, lines)
        if begun is None:
            break
        low, high = (low, middle) if _has(begun, path) else (middle, high)
    return low + 1


def _beginning_near(middle: int, low: int, high: int, lines: list[str]) -> tuple[int, dict[str, Any] | None]:
    """The longest beginning up to `middle` that can be parsed, or else the shortest one after it."""
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
        return value.meant()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    return value


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([Problem(str(file), 0, f"cannot be read: {error.strerror}.")]) from None
    except UnicodeDecodeError:
        raise ConfigError([Problem(str(file), 0, "is not UTF-8 text.")]) from None


def _parsed(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError([Problem(str(file), 0, "has too many brackets inside of each other.")]) from None
    except ValueError as error:
        if not isinstance(error, tomllib.TOMLDecodeError):
            raise ConfigError([Problem(str(file), 0, "has a number of too many digits.")]) from None
        sentence, _, place = str(error).partition(" (at ")
        digits = place.removeprefix("line ").partition(",")[0]
        line = int(digits) if digits.isdigit() else len(text.splitlines())
        raise ConfigError([Problem(str(file), line, f"This is not TOML: {sentence}.")]) from None
