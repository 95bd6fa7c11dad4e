"""The right to write a ledger file, held by one owner at a time.

It is a lock of the operating system on a file beside the ledger, so it ends with the process that holds it,
however that ends. Readers never ask for it. The file stays when the lock is released: to remove it would let two
owners in, each with a lock on a file of the same name.
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
        # flock and not lockf: its locks belong to the open file, so a second owner in this process is refused too.
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
            raise LedgerInUse(
                f"{ledger} is being written by somebody else. One stage at a time may open it."
            ) from error

    def release(self) -> None:
        self._file.close()
