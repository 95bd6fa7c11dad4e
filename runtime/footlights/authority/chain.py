"""The chains over everything that a ledger holds: one of epochs and commits, one of the steps of tools.

Each link names what came before it in its chain. Both begin at a seed made from the world that the ledger began
with. Nothing can be altered, taken out or put in without changing every digest that follows; whoever keeps the last
of them, the head, can prove that nothing is missing at the end either.

Tools have a chain of their own because it depends on the clock which of two ends first. What is committed does not.
"""

from __future__ import annotations

import orjson

from footlights.authority.digest import digest, digest_bytes

FORMAT = 3
"""Which way of writing a ledger this is. It enters the chains, so no reader can take one format for another.

No version that was released wrote any other: from the first release on, whoever changes what is written raises it.
"""


def seed(genesis_digest: str) -> str:
    """What each chain's first link is chained to. `genesis_digest` is that of the world that the ledger began with."""
    return digest({"format": FORMAT, "genesis": genesis_digest})


def link_epoch(previous: str, epoch: int, first_position: int) -> str:
    """The digest of an epoch: a stage opened, and its first commit, if it has any, is at `first_position`."""
    return digest({"epoch": epoch, "first_position": first_position, "previous": previous})


def link(previous: str, position: int, epoch: int, commit_digest: str) -> str:
    """The digest of a commit's entry. `previous` is that of the entry before it, or of its epoch if it is the first."""
    # Two digests and two small numbers have nothing that `canonical` could object to. There is a link for every commit.
    members = {"commit_digest": commit_digest, "epoch": epoch, "position": position, "previous": previous}
    return digest_bytes(orjson.dumps(members, option=orjson.OPT_SORT_KEYS))


def link_tool(previous: str, position: int, epoch: int, key: str, step: str) -> str:
    """The digest of a step of a tool. `previous` is that of the step before it, of whichever tool.

    Raises `NotCanonical` for a key that is not valid Unicode.
    """
    return digest({"epoch": epoch, "key": key, "position": position, "previous": previous, "step": step})
