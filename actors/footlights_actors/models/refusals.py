"""Explanation of a refusal: the sentence that a model server sends with an error status.

It may quote the prompt, so it is in no exception that a turn raises, and only a developer gets it: whole in development
mode; in the log at debug without the words of the conversation. Secrets are redacted in both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import orjson

from footlights.redaction.redactor import Redactor
from footlights.redaction.secret_fields import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARS = 500

_WORD = re.compile(r"[^\W_]{3,}")
_NOT_SAID = {"role", "type", "id", "tool_call_id", "tool_use_id"}
_BLANKS = re.compile(r"\s+")


def explanation(body: bytes, key: str | None) -> str:
    """The sentence of an error's body, as one printable line without secrets; empty if there is none."""
    try:
        told = _sentence(orjson.loads(body))
    except orjson.JSONDecodeError:
        told = body.decode(errors="replace")
    if key:
        told = told.replace(key, REDACTED)
    line = _BLANKS.sub(" ", Redactor().text(told).text).strip()
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line)
    return shown if len(shown) <= MAX_CHARS else f"{shown[:MAX_CHARS]}…"


def _sentence(answer: object) -> str:
    """The text under error, message or detail, whichever comes first, at any depth."""
    while isinstance(answer, dict):
        members = cast("dict[str, object]", answer)
        answer = next((members[name] for name in ("error", "message", "detail") if members.get(name)), "")
    return answer if isinstance(answer, str) else ""


def without_words_of(request: bytes, told: str) -> str:
    """The line without each word of the conversation in a request. The system prompt is the host's own."""
    try:
        messages = orjson.loads(request)["messages"]
        talked = [each for each in messages if each["role"] != "system"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    words = {word.casefold() for text in _texts(talked) for word in _WORD.findall(text)}
    return _WORD.sub(lambda word: "…" if word[0].casefold() in words else word[0], told)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)
    elif isinstance(value, dict):
        for name, each in cast("dict[str, object]", value).items():
            if name not in _NOT_SAID:
                yield from _texts(each)
