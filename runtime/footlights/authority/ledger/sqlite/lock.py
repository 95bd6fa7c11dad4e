"""Write lock of a ledger file: one writer at a time, in this process or any other. Readers never take it.

It is a lock of the operating system on a file beside the ledger, so it ends with its process even after a crash. It is
a separate file because SQLite's own locks end with each transaction. The file stays when the lock is
released: if it were removed, a second owner could lock a new file of the same name while the first holds the old one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from footlights.errors import LedgerInUse
from footlights.private_files import create_for_owner_only

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _take(file: BinaryIO) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: BinaryIO) -> None:
        # flock, not lockf: its locks belong to the open file, so a second owner in this process is refused too.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class WriteLock:
    """Held from the moment it is made until `release`.

    Raises `LedgerInUse`, or `OSError` if its file cannot be made.
    """

    def __init__(self, ledger: Path) -> None:
        path = ledger.resolve()
        beside = path.with_name(f"{path.name}.lock")
        create_for_owner_only(beside)
        self._file = beside.open("ab")
        try:
            _take(self._file)
        except OSError as error:
            self._file.close()
            raise LedgerInUse(f"{ledger} is open in another stage. One stage at a time may open it.") from error

    def release(self) -> None:
        self._file.close()
