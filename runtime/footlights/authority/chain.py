"""The one chain over everything that a ledger holds: each epoch and each commit names what came before it.

The chain begins at a seed made from the world that the ledger began with. An epoch is a link, and so is every
commit in it. Nothing can be altered, taken out or put in without changing every digest that follows; whoever
keeps the last of them, the head, can prove that nothing is missing at the end either.
"""

from __future__ import annotations

import orjson

from footlights.authority.digest import digest, digest_bytes

FORMAT = 2
"""Which way of writing a ledger this is. It enters the chain, so no reader can take one format for another."""


def seed(genesis_digest: str) -> str:
    """What the first link is chained to. `genesis_digest` is that of the world that the ledger began with."""
    return digest({"format": FORMAT, "genesis": genesis_digest})


def link_epoch(previous: str, epoch: int, first_position: int) -> str:
    """The digest of an epoch: a stage opened, and its first commit, if it has any, is at `first_position`."""
    return digest({"epoch": epoch, "first_position": first_position, "previous": previous})


def link(previous: str, position: int, epoch: int, commit_digest: str) -> str:
    """The digest of a commit's entry. `previous` is that of the entry before it, or of its epoch if it is the first."""
    # Two digests and two small numbers have nothing that `canonical` could object to. There is a link for every commit.
    members = {"commit_digest": commit_digest, "epoch": epoch, "position": position, "previous": previous}
    return digest_bytes(orjson.dumps(members, option=orjson.OPT_SORT_KEYS))
