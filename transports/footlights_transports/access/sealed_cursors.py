"""Sealed cursors: positions in the feed of commits that a user can give back, and learn nothing from.

The id of a commit is made from all that the commit contains, and the ids of two positions tell whether anything
happened between them. So a user gets the id enciphered, with a new nonce each time: two cursors of one position are not
alike. The key is that of the process; after a restart of the server its cursors are unknown, and users begin anew.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from secrets import token_bytes
from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from footlights_transports.access.policy import User

_NONCE = _TAG = 16
_ROOM = 32
"""Bytes of an id, so that all cursors are equally long."""


class SealedCursors:
    def __init__(self) -> None:
        self._key = token_bytes(32)

    def seal(self, user: User, commit_id: str) -> str:
        nonce = token_bytes(_NONCE)
        hidden = self._ciphered(nonce, commit_id.encode().ljust(_ROOM))
        return urlsafe_b64encode(nonce + hidden + self._tag(user, nonce + hidden)).decode().rstrip("=")

    def open(self, user: User, cursor: str) -> str:
        """The id of the commit. Raises `InvalidCommand` unless this process sealed it for this user."""
        try:
            data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            data = b""
        nonce, hidden, tag = data[:_NONCE], data[_NONCE:-_TAG], data[-_TAG:]
        if len(hidden) != _ROOM or not hmac.compare_digest(tag, self._tag(user, nonce + hidden)):
            raise InvalidCommand("after: is no cursor of yours, or of before a restart. Begin anew, with the world.")
        return self._ciphered(nonce, hidden).decode().rstrip()

    def _ciphered(self, nonce: bytes, data: bytes) -> bytes:
        pad = blake2b(nonce, key=self._key, person=b"pad", digest_size=_ROOM).digest()
        return bytes(one ^ other for one, other in zip(data, pad, strict=True))

    def _tag(self, user: User, data: bytes) -> bytes:
        name = (user.name or "").encode()
        return blake2b(name + b"\0" + data, key=self._key, person=b"tag", digest_size=_TAG).digest()
