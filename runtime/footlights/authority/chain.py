"""Hash chains of a ledger: one of epochs and commits, one of the steps of tools.

Each link includes the digest of the previous one. Both chains begin at a seed made from the genesis world. Altering,
removing or inserting a link changes every later digest; a copy of the last one, the head, also proves that nothing is
missing at the end.

Tools have a chain of their own because the order in which tools end depends on the clock, and commits do not.
"""

from __future__ import annotations

import orjson

from footlights.authority.digest import digest, digest_bytes

FORMAT = 3
"""Version of the ledger format. It is part of the seed, so no reader can mistake one format for another.

No release wrote any other format. From the first release on, every change of the format raises it.
"""


def seed(genesis_digest: str) -> str:
    """The digest before the first link of each chain. `genesis_digest` is the digest of the genesis world."""
    return digest({"format": FORMAT, "genesis": genesis_digest})


def link_epoch(previous: str, epoch: int, first_position: int) -> str:
    """The digest of an epoch: a stage opened, and its first commit, if any, has the position `first_position`."""
    return digest({"epoch": epoch, "first_position": first_position, "previous": previous})


def link(previous: str, position: int, epoch: int, commit_digest: str) -> str:
    """The digest of a commit's entry. `previous` is that of the entry before it, or of its epoch for the first."""
    # A fast path for every commit: two digests and two small numbers are always canonical.
    members = {"commit_digest": commit_digest, "epoch": epoch, "position": position, "previous": previous}
    return digest_bytes(orjson.dumps(members, option=orjson.OPT_SORT_KEYS))


def link_tool(previous: str, position: int, epoch: int, key: str, step: str) -> str:
    """The digest of a step of a tool. `previous` is that of the previous step of any tool.

    Raises `NotCanonical` for a key that is not valid Unicode.
    """
    return digest({"epoch": epoch, "key": key, "position": position, "previous": previous, "step": step})
