"""The digest of a JSON value, written again from docs/design/world.md, with nothing of the runtime."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import rfc8785
from blake3 import blake3

LEAF = 1024


def c(value: Any) -> bytes:
    return rfc8785.dumps(value)


def h(data: bytes) -> bytes:
    return blake3(data).digest()


def large(value: Any) -> bool:
    return len(c(value)) > LEAF


def d(value: Any) -> bytes:
    if not large(value) or isinstance(value, str):
        return h(c(value))
    if isinstance(value, dict):
        entries = [(key.encode("utf-16-be").hex(), key, each) for key, each in value.items()]
    else:
        entries = [(format(index, "08x"), None, each) for index, each in enumerate(value)]
    return p(sorted(entries, key=lambda entry: entry[0]), 0)


def whole(entries: list[Any]) -> Any:
    if entries[0][1] is None:
        return [value for _, _, value in entries]
    return {key: value for _, key, value in entries}


def weight(entry: Any) -> int:
    _, key, value = entry
    w = 66 if large(value) else len(c(value))
    return (1 if key is None else len(c(key)) + 2) + w


def height(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(height, value.values() if isinstance(value, dict) else value), default=0)


def p(entries: list[Any], pos: int) -> bytes:
    array = entries[0][1] is None
    if len(entries) == 1 or 1 + sum(map(weight, entries)) <= LEAF:
        return leaf(entries, array=array)
    at = pos
    while len({digit(entry, at) for entry in entries}) == 1:
        at += 1
    slots = [(slot, list(group)) for slot, group in groupby(entries, lambda entry: digit(entry, at))]
    skip, names = entries[0][0][pos:at], "".join(slot for slot, _ in slots)
    return h(
        bytes([4 if array else 2])
        + len(c(whole(entries))).to_bytes(8, "big")
        + len(entries).to_bytes(8, "big")
        + f"{len(skip)}:{skip},{len(names)}:{names},".encode()
        + bytes(height(whole(group)) for _, group in slots)
        + b"".join(p(group, at + 1) for _, group in slots)
    )


def digit(entry: Any, at: int) -> str:
    return entry[0][at] if at < len(entry[0]) else "."


def leaf(entries: list[Any], *, array: bool) -> bytes:
    if not any(large(value) for _, _, value in entries):
        return h(c(whole(entries)))
    if array:
        refs = {str(offset): d(value).hex() for offset, (_, _, value) in enumerate(entries) if large(value)}
        inline: Any = [None if large(value) else value for _, _, value in entries]
    else:
        refs = {key: d(value).hex() for _, key, value in entries if large(value)}
        inline = {key: value for _, key, value in entries if not large(value)}
    return h(bytes([3 if array else 1]) + c([inline, refs]))
