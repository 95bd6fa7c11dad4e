"""Schema of the settings of `footlights serve`: kinds, defaults, meanings. The reference in the docs is made of it.

A new setting also needs a field of `Config` and its value in `load_config`, in `config.py`. Settings of `[limits]`,
`[wire]` and `[budget]` are fields of the classes at the end of this file, and views have sections of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from attrs import fields, frozen

from footlights.limits import Limits
from footlights.models.budget import BudgetConfig
from footlights_actors.sealed import CONTENT_KEYS_VARIABLE
from footlights_transports.access.policy import WireLimits

if TYPE_CHECKING:
    from collections.abc import Iterable

_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

Fits: TypeAlias = Callable[[object], bool]


@frozen
class Kind:
    """The values that a setting accepts."""

    allowed: str
    """In words, to be read after "must be"."""
    fits: Fits


def _is_text(value: object) -> bool:
    return type(value) is str and value != ""


def _is_path(value: object) -> bool:
    return _is_text(value) and "\0" not in cast(str, value)


def _is_whole(value: object) -> bool:
    """TOML guarantees 64 bits, and clocks take no more."""
    return type(value) is int and abs(value) < 2**63


def _is_number(value: object) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


def _is_seconds(value: object) -> bool:
    return _is_number(value) and cast(float, value) >= 0


def _is_import_path(value: object) -> bool:
    return type(value) is str and _IMPORT_PATH.fullmatch(value) is not None


def _is_weights(value: object) -> bool:
    weights = cast("dict[str, object]", value).values() if isinstance(value, dict) else (None,)
    return all(_is_number(each) and 0 <= cast(float, each) <= 1 for each in weights)


def _all(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list) and all(map(fits, cast("list[object]", value)))


def whole_from(minimum: int) -> Kind:
    return Kind(f"a whole number from {minimum} up", lambda value: _is_whole(value) and cast(int, value) >= minimum)


def one_of(*choices: str) -> Kind:
    return Kind(f"one of {', '.join(choices)}", lambda value: value in choices)


TEXT = Kind("a string that is not empty", _is_text)
TEXTS = Kind("a list of strings", _all(_is_text))
FILE = Kind("the path of a file", _is_path)
FOLDER = Kind("the path of a folder", _is_path)
FLAG = Kind("true or false", lambda value: type(value) is bool)
SECONDS = Kind("a number of seconds, 0 or more", _is_seconds)
PORT = Kind(
    "a port: a whole number from 0 to 65535", lambda value: _is_whole(value) and 0 <= cast(int, value) <= 65_535
)
IMPORT = Kind("an import path, such as mygame.npcs:innkeeper", _is_import_path)
IMPORTS = Kind("a list of import paths, such as mygame.npcs:innkeeper", _all(_is_import_path))
WHOLE = Kind("a whole number", _is_whole)
WEIGHTS = Kind("a table of numbers from 0 to 1", _is_weights)
NUMBER = Kind("a number", _is_number)


@frozen
class Setting:
    """One setting of a section."""

    name: str
    kind: Kind
    meaning: str
    default: Any = None
    required: bool = False


SERVER = (
    Setting("host", TEXT, "The address to listen on. Without tokens it must be a loopback address.", "127.0.0.1"),
    Setting("ws_port", PORT, "The port for WebSocket clients; 0 is any free one.", 7600),
    Setting("http_port", PORT, "The port for HTTP clients; 0 is any free one.", 7601),
    Setting("ledger", FILE, "The ledger of commits; game.ledger beside game.toml, footlights.ledger without a file."),
    Setting("trace", FOLDER, "Where to write traces of turns, which contain no text. No traces if not set."),
    Setting("grace", SECONDS, "How long turns may run after SIGTERM or SIGINT before they are interrupted.", 5.0),
    Setting("workers", whole_from(1), "The processes over which worlds are spread; with 1, this one serves them.", 1),
    Setting("gentle_gc", FLAG, "Whether garbage is collected so that no turn waits; if not, as Python does it.", True),
    Setting("tokens_file", FILE, "The users who may connect: a user and a token on each line."),
    Setting(
        "origins",
        TEXTS,
        'Web pages that may connect, such as "https://game.example"; "*" is all. '
        "Without tokens, those of loopback addresses may too.",
        (),
    ),
    Setting("tls_cert", FILE, "A certificate chain in PEM; with it both servers use TLS."),
    Setting("tls_key", FILE, "The key of the certificate."),
)
USER = (
    Setting("operator", FLAG, "Whether this user operates the server and may see the whole world.", False),
    Setting(
        "game_server",
        FLAG,
        "Whether this user acts for many players: the limits per user do not apply to it, and it may commit outside of "
        "sessions and follow commits.",
        False,
    ),
)
CAST = (
    Setting("make", IMPORT, "A function without arguments that returns a whole Cast, in place of what follows."),
    Setting("tools", IMPORTS, "The tools: each path names a tool, or a list of tools.", ()),
    Setting("rules", IMPORTS, "The authority's rules: each path names a rule, or a mapping of rules by name.", ()),
    Setting("world_file", FILE, "The initial world, as JSON. The world of an existing ledger takes precedence."),
    Setting("remote_models", FLAG, "Whether sessions consent to remote models unless they say otherwise.", False),
    Setting(
        "fallback",
        FLAG,
        "Whether the next model of a persona takes the place of one that fails before its first token.",
        True,
    ),
    Setting(
        "model_memory_bytes", whole_from(1), "The memory that all loaded models may use together. No limit if not set."
    ),
)
NOTEBOOKS = (
    Setting("folder", FOLDER, "Where notes are sealed. They are in memory, until the server ends, if not set."),
    Setting("keys_file", FILE, f"Keys that seal notes, one a line, newest first; {CONTENT_KEYS_VARIABLE} if not set."),
    Setting(
        "notes",
        one_of("ask", "consent"),
        "ask: the player is asked about each note. consent: unless he gave a standing yes.",
        "ask",
    ),
    Setting("language", TEXT, "The language of notes: the name of a Snowball algorithm.", "english"),
    Setting("max_notes", whole_from(1), "Notes in one notebook.", 500),
    Setting("max_note_chars", whole_from(1), "Characters of one note.", 300),
    Setting("recall_chars", whole_from(1), "Characters of all notes in one prompt.", 1_200),
    Setting("half_life", whole_from(1), "Turns with a new note, after which a note is half as recent.", 50),
)
ANALYST = (Setting("documents", FOLDER, "The folder of .md and .txt files that it searches; the demo's if not set."),)
PERSONA = (
    Setting("text", TEXT, "A description of the character and its way of speaking, for the model.", ""),
    Setting(
        "models",
        TEXTS,
        "The names of its models, each for when those before it fail; if not set, the one of its own name, or else the "
        "first of all.",
    ),
    Setting("tools", TEXTS, "The names of the tools that it may use; all if not set."),
    Setting("facts", IMPORT, "A function that makes its facts from the world and the speaker."),
    Setting("traits", WEIGHTS, "How strong each trait of its character is, from 0 to 1, by name; the model is told."),
)

SAMPLING = (
    Setting("temperature", NUMBER, "Randomness, 0 to 2."),
    Setting("top_p", NUMBER, "The probability that the candidates have together, 0 to 1."),
    Setting("min_p", NUMBER, "The least probability of a candidate, as a share of the likeliest one's, 0 to 1."),
    Setting("repeat_penalty", NUMBER, "Divides the score of tokens that occurred recently, 0.5 to 2; 1 is none."),
    Setting("frequency_penalty", NUMBER, "Lowers the score of a token for each time that it occurred, -2 to 2."),
    Setting("stop", TEXTS, "Texts at which a round ends, at most 4."),
    Setting("seed", WHOLE, "Makes the choice repeatable, where the model can."),
    Setting("max_tokens", WHOLE, "The most output tokens of a turn, within the budget of its tier."),
)
"""Of a model or a persona. The turn takes precedence over the persona, and the persona over the model."""

_SILENCE = Setting("silence_timeout", SECONDS, "How long the server of the model may be silent.", 60.0)
_REMOTE = Setting("remote", FLAG, "Whether prompts leave this machine; derived from base_url if not set.")
_NAME = Setting("name", TEXT, "The name of the model on its server.", required=True)
_BEGINS_IN_THOUGHT = Setting("begins_in_thought", FLAG, "Whether its prompt template opens the reasoning block.", False)
_ROOM = (
    Setting("context_tokens", whole_from(1), "The context window: prompt and answer of one turn. No limit if not set."),
    Setting("slots", whole_from(1), "The number of turns that it serves at once. No limit if not set."),
)

MODELS: Mapping[str, tuple[Setting, ...]] = {
    "scripted": (
        Setting("script", IMPORT, "A function from the prompt to lines.", required=True),
        Setting("pace", SECONDS, "How long it waits before each word.", 0.0),
        Setting("load_seconds", SECONDS, "How long the first load takes.", 0.0),
    ),
    "local": (
        Setting("weights", TEXT, "The path of a GGUF file, or the name of weights, such as smollm2.", required=True),
        Setting("slots", whole_from(1), "The number of turns that it serves at once.", 2),
        Setting("context_tokens", whole_from(32), "The context window: prompt and answer of one turn.", 2048),
        Setting("threads", whole_from(1), "The number of threads for computing.", 1),
        Setting("tool_choice", one_of("auto", "required"), "When it calls tools.", "auto"),
        _BEGINS_IN_THOUGHT,
        Setting("memory_bytes", whole_from(1), "The memory that it uses; about the size of its file if not set."),
    ),
    "openai": (
        _NAME,
        Setting("base_url", TEXT, "The URL of its server, up to and including /v1.", required=True),
        Setting("key_env", TEXT, "The environment variable that holds the key.", "OPENAI_API_KEY"),
        _REMOTE,
        Setting(
            "max_tokens_field",
            one_of("max_tokens", "max_completion_tokens"),
            "The name of the field that limits the length of an answer.",
            "max_tokens",
        ),
        Setting("send_sampling", FLAG, "Whether to send sampling settings besides the limit of tokens.", True),
        Setting("extra_sampling", FLAG, "Whether to send min_p and repeat_penalty; if not set, only on loopback."),
        _BEGINS_IN_THOUGHT,
        *_ROOM,
        _SILENCE,
    ),
    "anthropic": (
        _NAME,
        Setting("base_url", TEXT, "The URL of its server.", "https://api.anthropic.com"),
        Setting("key_env", TEXT, "The environment variable that holds the key.", "ANTHROPIC_API_KEY"),
        Setting("api_version", TEXT, "The version of the API; the newest one known if not set."),
        _REMOTE,
        *_ROOM,
        _SILENCE,
    ),
}
"""By `kind`. Any other kind is the import path of a function that makes a model."""
SAMPLED = ("local", "openai", "anthropic")
"""The kinds that have sampling settings; a script has none."""
MODEL_KIND = Kind(
    f"{', '.join(MODELS)} or an import path", lambda value: value in list(MODELS) or _is_import_path(value)
)


def settings_of(kind: type[Any]) -> tuple[Setting, ...]:
    """The settings of a class that checks and documents its values itself."""
    kinds: Mapping[type[Any], Kind] = {float: NUMBER, bool: FLAG, int: WHOLE}
    return tuple(Setting(each.name, kinds[type(each.default)], "", each.default) for each in fields(kind))


LIMITS = settings_of(Limits)
WIRE = settings_of(WireLimits)
BUDGET = settings_of(BudgetConfig)

REDACTION = (
    Setting("views", TEXTS, "The views whose text is covered: native, chat_feed, dexi, mission, kgent, ag_ui.", ()),
    Setting("patterns", TEXTS, "Regular expressions of further text that they must not show.", ()),
    Setting("fields", TEXTS, 'Names of further fields whose values they must not show, such as "maiden name".', ()),
)

WORLDS = (
    Setting("names", TEXTS, "The worlds beside the main one, at /w/NAME; each has a ledger of its own.", ()),
    Setting("folder", FOLDER, "Where their ledgers are; game.worlds beside game.ledger if not set."),
    Setting("max_on_demand", whole_from(0), "How many further worlds clients may create by naming them.", 0),
    Setting("max_open", whole_from(1), "How many worlds may be open at once, beside the main one.", 1_000),
    Setting(
        "idle_seconds",
        SECONDS,
        "A world without connections, sessions and turns is closed after this time, until it is named again; 0 means "
        "never.",
        300.0,
    ),
)
"""Besides `templates`: a settings file for each name of a world, or for the beginning of names and a star."""

SECTIONS = (
    "server",
    "tokens",
    "users",
    "cast",
    "analyst",
    "notebooks",
    "models",
    "personas",
    "world",
    "budget",
    "limits",
    "wire",
    "redaction",
    "worlds",
)
"""Besides those of the views."""


def names(settings: Iterable[Setting]) -> list[str]:
    return [each.name for each in settings]
