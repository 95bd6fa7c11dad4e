"""Document shelf: full-text search over a folder of documents.

Results reflect the current files: the index is in memory and is rebuilt when a file has changed. A query is a list of
words, without syntax. Secrets are redacted before a document is indexed, so none can be found or cut in half. Searches
block, so they run in threads; several may run at the same time.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import RegistrationError, ToolError
from footlights.redaction.redactor import Redactor
from footlights.redaction.secret_fields import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (".md", ".txt")
MAX_DOCUMENTS = 1_000
MAX_DOCUMENT_BYTES = 262_144
"""The rest of a longer document is not indexed."""
MAX_TOTAL_BYTES = 8_000_000
MAX_FILES_SEEN = 20_000
MAX_PATH_CHARS = 256
MAX_WORDS = 32
SNIPPET_CHARS = 240

_WORD = re.compile(r"[^\W_]+")
_HEADING = re.compile(r"\s*#+[ \t]+(.{1,200})")
_COMMON_WORDS = """
    a about all an and any are as at be been but by can could did do does for from had has have how i if in into is it
    its me my no not of on or our should so some than that the their them there these they this those to us was we were
    what when where which who why will with would you your
"""
"""Words that are ignored in queries."""
_COMMON = frozenset(_COMMON_WORDS.split())


@frozen
class Hit:
    """A document that matches."""

    identifier: str
    """Its path in the folder."""
    title: str
    snippet: str
    """The matching part."""

    @property
    def is_redacted(self) -> bool:
        """Whether the title or the snippet is redacted."""
        return REDACTED in self.title or REDACTED in self.snippet


@frozen
class Found:
    """The result of a search."""

    hits: tuple[Hit, ...]
    """The best first."""
    documents: int
    """The number of searched documents."""


@frozen
class _File:
    identifier: str
    path: Path
    state: tuple[int, int, int]
    """Changes when the file is written or replaced."""


@frozen
class _Index:
    database: bytes
    """A serialized database, because a connection belongs to one thread."""
    documents: int


class DocumentShelf:
    """The `.md` and `.txt` files of a folder and its subfolders. Raises `RegistrationError` if it does not exist.

    Hidden files and symbolic links are excluded.
    """

    def __init__(self, folder: str | os.PathLike[str], redactor: Redactor | None = None) -> None:
        self._folder = Path(folder)
        self._redactor = redactor or Redactor()
        if not self._folder.is_dir():
            raise RegistrationError("The folder of documents does not exist, or is not a folder.")
        self._lock = Lock()
        self._indexed: tuple[_File, ...] | None = None
        self._index = _Index(b"", 0)

    def search(self, words: str, limit: int) -> Found:
        """The documents that match any of these words, the best first. Raises `ToolError`."""
        index = self._up_to_date()
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(index.database)
            rows = database.execute(_SEARCH, (_any_of(words), limit)).fetchall()
        return Found(tuple(Hit(path, title, _on_one_line(snippet)) for path, title, snippet in rows), index.documents)

    def _up_to_date(self) -> _Index:
        with self._lock:
            try:
                files = tuple(_files(self._folder))
            except OSError:
                raise ToolError("The documents cannot be read.") from None
            if files != self._indexed:
                self._index = _index_of(files, self._redactor)
                self._indexed = files
            return self._index


def _files(folder: Path) -> Iterator[_File]:
    """The documents in the order of their paths, up to the limits."""
    seen = documents = size = 0
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            seen += 1
            path = Path(place, name)
            identifier = path.relative_to(folder).as_posix()
            if not _belongs(path, identifier):
                continue
            found = path.stat()
            documents += 1
            size += min(found.st_size, MAX_DOCUMENT_BYTES)
            if documents > MAX_DOCUMENTS or size > MAX_TOTAL_BYTES or seen > MAX_FILES_SEEN:
                return
            yield _File(identifier, path, (found.st_mtime_ns, found.st_size, found.st_ino))


def _raise(error: OSError) -> None:
    raise error


def _belongs(path: Path, identifier: str) -> bool:
    is_document = path.suffix in SUFFIXES and not path.name.startswith(".") and len(identifier) <= MAX_PATH_CHARS
    # A name that is not valid Unicode could not be sent to a model.
    return is_document and path.is_file() and not path.is_symlink() and identifier.isprintable()


def _index_of(files: Iterable[_File], redactor: Redactor) -> _Index:
    rows = [row for file in files if (row := _row(file, redactor)) is not None]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(_TABLE)
        database.executemany("INSERT INTO documents VALUES (?, ?, ?)", rows)
        database.commit()
        return _Index(database.serialize(), len(rows))


def _row(file: _File, redactor: Redactor) -> tuple[str, str, str] | None:
    """Path, title and body; None if the file cannot be read any more."""
    try:
        with file.path.open("rb") as opened:
            said = opened.read(MAX_DOCUMENT_BYTES).decode(errors="replace").replace("\0", " ")
    except OSError:
        return None
    title, body = _title_and_body(redactor.text(said).text)
    return file.identifier, title or file.path.stem, body


def _title_and_body(said: str) -> tuple[str, str]:
    heading = _HEADING.match(said)
    return ("", said) if heading is None else (heading[1].strip(), said[heading.end() :])


def _any_of(words: str) -> str:
    """A query without syntax: every word is quoted, and no word contains a quote."""
    found = list(dict.fromkeys(_WORD.findall(words.casefold())))
    telling = [word for word in found if word not in _COMMON]
    return " OR ".join(f'"{word}"' for word in (telling or found)[:MAX_WORDS]) or '""'


def _on_one_line(snippet: str) -> str:
    return " ".join(snippet.split())[:SNIPPET_CHARS]


_TABLE = "CREATE VIRTUAL TABLE documents USING fts5(path UNINDEXED, title, body, tokenize = 'porter unicode61')"
# A word in the title has weight 4; ties are broken by path, so that the order is deterministic.
_SEARCH = (
    "SELECT path, title, snippet(documents, 2, '', '', '...', 24) FROM documents WHERE documents MATCH ? "
    "ORDER BY bm25(documents, 0, 4, 1), path LIMIT ?"
)
