"""Settings of a server: what they make, and the problems that they report."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from footlights import BudgetTier, Limits, Sampling, TurnFinal, TurnParams, WarmState, open_stage
from footlights.modes import IntentKind, detect
from footlights.speaker import Speaker
from footlights.testing import only, take_turn
from footlights_actors import ScriptedModel
from footlights_actors.demo.tavern.world import opening_hour
from footlights_actors.models.anthropic import AnthropicModel
from footlights_actors.models.local.model import LocalModel
from footlights_actors.models.openai import OpenAIModel
from footlights_transports import ConfigError, load_config
from footlights_transports.access.policy import User, WireLimits
from footlights_transports.config.schema import ANALYST, CAST, LIMITS, MODELS, PERSONA, SECTIONS, SERVER, names
from footlights_transports.config.source import Problem, line_of
from footlights_transports.views.dexi.view import DexiView
from tests.kit.paths import ROOT
from tests.kit.serving import view_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio.testing import MockClock

DOCS = ROOT / "docs"
TOKEN = "a-token-of-sixteen-or-more"
ANOTHER = "another-token-of-sixteen"

MODELS_AND_TOOLS = """
from footlights import Fact, ToolContext, tool
from footlights.authority import accept
from footlights_actors import Say, ScriptedModel, standard_cast

def script(prompt):
    return [Say("Aye.")]

def knows(world, speaker):
    return [Fact("mood", world["mood"])]

def oracle(*, model_id, answer="Perhaps."):
    return ScriptedModel(lambda prompt: [Say(answer)], model_id=model_id)

def whole():
    return standard_cast(ScriptedModel(script, model_id="whole"))

def needy(**options):
    import a_module_that_nobody_has

def leaving(**options):
    raise SystemExit("do not quote me")

def __getattr__(name):
    if name == "lazy":
        raise ZeroDivisionError("do not quote me")
    raise AttributeError(name)

def broken(**options):
    raise ZeroDivisionError("do not quote me")

@tool
async def shout(context: ToolContext) -> str:
    '''Shout.'''
    return ""

@tool
async def whisper(context: ToolContext) -> str:
    '''Whisper.'''
    return ""

several = [shout, whisper]

def peace(world, intents):
    return accept()

def alone(world):
    return accept()

def silence():
    return []

laws = {"first": peace, "second": peace}
again = {"peace": peace}
number = 3
nothing = None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a game in it. What it imports and where it looks is forgotten afterwards."""
    (tmp_path / "my_game.py").write_text(MODELS_AND_TOOLS)
    (tmp_path / "my_broken_game.py").write_text("raise ZeroDivisionError('do not quote me')")
    (tmp_path / "my_unlawful_game.py").write_text("from footlights import Limits; Limits(max_sessions=0)")
    (tmp_path / "my_needy_game.py").write_text("import a_module_that_nobody_has")
    (tmp_path / "my_leaving_game.py").write_text("raise SystemExit('do not quote me')")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_game", raising=False)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    file = folder / "game.toml"
    file.write_text(text, encoding="utf-8")
    return file


def problems(
    file: Path | None, environ: Mapping[str, str] | None = None, options: Mapping[tuple[str, ...], object] | None = None
) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_config(file, environ, options)
    assert str(refused.value).splitlines() == [str(each) for each in refused.value.problems]
    prefix = f"{file}:"
    return [str(each).removeprefix(prefix) for each in refused.value.problems]


# -- without any settings


def test_settings_may_begin_with_the_mark_that_editors_on_windows_write(tmp_path: Path) -> None:
    file = tmp_path / "game.toml"
    file.write_bytes(b"\xef\xbb\xbf[server]\nws_port = 7777\n")
    assert load_config(file).ws_port == 7777


def test_without_settings_it_is_a_tavern_on_this_machine() -> None:
    config = load_config()
    assert (config.host, config.ws_port, config.http_port) == ("127.0.0.1", 7600, 7601)
    assert (config.ledger, config.trace, config.grace, config.tls) == (Path("footlights.ledger"), None, 5.0, None)
    assert (config.limits, config.policy.limits) == (Limits(), WireLimits())
    assert list(config.cast.personas) == ["innkeeper", "analyst"]
    assert config.cast.world.view() == opening_hour()
    assert not config.policy.wants_tokens
    assert view_of(config, DexiView).settings.chat_agent == "analyst"


def test_the_host_may_redact_more(folder: Path) -> None:
    file = written(folder, "[dexi]\nsecret_patterns = ['room (\\d+)', 'X\\d+']\nsecret_fields = ['maiden name']")
    redactor = view_of(load_config(file), DexiView).settings.redactor
    said = redactor.text("room 7, X1, maiden_name=Lovelace, ada@example.org, password=x").text
    assert said == "room [redacted], [redacted], maiden_name=[redacted], [redacted], password=[redacted]"
    assert problems(written(folder, "[dexi]\nsecret_patterns = ['a', '(', 'x*']\nsecret_field = ['a']")) == [
        "2: dexi.secret_patterns cannot be used: number 2: A pattern to redact is not a regular expression.",
        "2: dexi.secret_patterns cannot be used: number 3: A pattern to redact matches the empty text.",
        (
            "3: dexi.secret_field is not a setting. Did you mean secret_fields? "
            "There are: chat_agent, secret_patterns, secret_fields."
        ),
    ]


SAMPLED = """
[models.odo]
kind = "openai"
name = "qwen3"
base_url = "http://127.0.0.1:11434/v1"
[models.odo.sampling]
temperature = 0.6
stop = ["\\n"]
max_tokens = 60
[personas.odo]
text = "You are brief."
sampling = { top_p = 0.9, seed = 7 }
"""


def test_a_model_and_a_persona_may_have_sampling_settings(folder: Path) -> None:
    cast = load_config(written(folder, SAMPLED)).cast
    assert cast.models["odo"].traits.sampling == Sampling(temperature=0.6, stop=["\n"], max_tokens=60)
    assert cast.personas["odo"].sampling == Sampling(top_p=0.9, seed=7)


@pytest.mark.shows("gateway-90")
def test_a_persona_may_have_traits(folder: Path) -> None:
    told = f'{SAMPLED}[personas.odo.traits]\nwarmth = 0.8\n"dry wit" = 1\n'
    persona = load_config(written(folder, told)).cast.personas["odo"]
    assert persona.system == "You are brief.\nYour traits, from 0 to 1: warmth 0.8, dry wit 1."
    refused = "personas.odo.traits must be a table of numbers from 0 to 1."
    assert refused in "\n".join(problems(written(folder, told.replace("0.8", "8"))))
    assert "weights from 0 to 1, by name" in "\n".join(problems(written(folder, told.replace("dry wit", "\\n"))))


def test_what_no_model_takes_as_sampling_is_a_problem_with_its_line(folder: Path) -> None:
    wrong = SAMPLED.replace("0.6", "3").replace("top_p", "top_k").replace("60", "0")
    told = "\n".join(problems(written(folder, wrong)))
    assert "models.odo.sampling.temperature is refused: temperature must be a number from 0 to 2." in told
    assert "models.odo.sampling.max_tokens is refused" in told
    assert "personas.odo.sampling.top_k is not a setting." in told


def test_known_weights_speak_with_their_own_settings_unless_they_are_set(folder: Path, smollm2: Path) -> None:
    text = "[models.odo]\nkind = 'local'\nweights = 'smollm2'\nsampling = { temperature = 0 }"
    sampling = load_config(written(folder, text)).cast.models["odo"].traits.sampling
    assert (sampling.temperature, sampling.max_tokens, sampling.stop) == (0, 60, ("\n",))


def test_a_script_has_no_sampling_settings(folder: Path) -> None:
    scripted = '[models.odo]\nkind = "scripted"\nscript = "my_game:script"\nsampling = { seed = 7 }\n'
    assert "models.odo.sampling is not a setting." in problems(written(folder, scripted))[0]


def test_a_game_adds_examples_and_vetoes_of_its_own(folder: Path) -> None:
    file = written(folder, "[modes]\nwork = ['Row me south']\nchat = ['Row, row, row']\nveto = ['off the record']")
    hints = view_of(load_config(file), DexiView).settings.hints
    assert detect("Row me south!", hints).kind is IntentKind.EXECUTION
    assert detect("Row, row, row", hints).kind is IntentKind.CONVERSATIONAL
    assert detect("Off the record: row me south!", hints).vetoes == ("veto.host",)
    assert problems(written(folder, "[modes]\nwork = ['...']")) == [
        "1: modes cannot be used: An example or a veto must hold words."
    ]


def test_the_agent_of_the_chat_is_a_persona(folder: Path) -> None:
    tavern = load_config(written(folder, '[dexi]\nchat_agent = "innkeeper"'))
    assert view_of(tavern, DexiView).settings.chat_agent == "innkeeper"
    assert problems(written(folder, '[dexi]\nchat_agent = "nobody"')) == [
        "2: dexi.chat_agent is not a persona; there are: innkeeper, analyst."
    ]
    own = load_config(written(folder, '[cast]\nmake = "my_game:whole"'))
    assert view_of(own, DexiView).settings.chat_agent is None
    namesake = load_config(written(folder, f"{ONE_MODEL}personas.odo = {{}}\npersonas.analyst = {{}}"))
    assert view_of(namesake, DexiView).settings.chat_agent is None, "only in the tavern an analyst is special"


def test_the_tavern_may_consent_to_remote_models(folder: Path) -> None:
    assert load_config(written(folder, "[cast]\nremote_models = true")).cast.remote_models is True


# -- a cast of one's own


async def test_the_analyst_searches_the_folder_that_is_named(folder: Path, quiet_clock: MockClock) -> None:
    (folder / "zoo").mkdir()
    (folder / "zoo" / "zebra.md").write_text("A zebra.")
    cast = load_config(written(folder, '[analyst]\ndocuments = "zoo"'), {}).cast
    async with open_stage(cast) as stage:
        events = await take_turn(stage.start(), "Search the documents for a zebra", TurnParams(persona="analyst"))
    assert only(events, TurnFinal).text == "I found 1 of 1 documents: zebra. The first says: A zebra."


def test_a_file_describes_a_whole_game(folder: Path) -> None:
    (folder / "tokens").touch(0o600)
    (folder / "tokens").write_text(f"# who may come in\n\nalice {TOKEN}\nbob   {ANOTHER}\n")
    config = load_config(
        written(
            folder,
            """
            [server]
            host = "0.0.0.0"
            ws_port = 0
            http_port = 8080
            ledger = "inn.ledger"
            trace = "traces"
            grace = 30
            tokens_file = "tokens"
            origins = ["https://game.example"]

            [cast]
            tools = ["my_game:shout"]
            rules = ["my_game:laws", "my_game:peace"]
            remote_models = true
            fallback = false
            model_memory_bytes = 1_000_000

            [models.odo]
            kind = "scripted"
            script = "my_game:script"
            load_seconds = 2

            [models.sybil]
            kind = "my_game:oracle"
            answer = "Certainly not."

            [personas.innkeeper]
            text = "You keep the inn."
            facts = "my_game:knows"
            models = ["sybil", "odo"]
            tools = ["shout"]

            [personas.guest]

            [world]
            mood = "merry"

            [budget]
            whisper_max = 7

            [limits]
            replay_turns = 9
            stall_timeout = 3

            [wire]
            keep_alive = 4
            """,
        )
    )
    assert (config.host, config.ws_port, config.http_port, config.grace) == ("0.0.0.0", 0, 8080, 30)
    assert (config.ledger, config.trace) == (folder / "inn.ledger", folder / "traces")
    assert (config.limits.replay_turns, config.limits.stall_timeout) == (9, 3)
    assert config.policy.limits.keep_alive == 4
    assert config.policy.admit(f"Bearer {ANOTHER}") == User("bob")
    config.policy.check_origin("https://game.example")
    cast = config.cast
    assert (list(cast.models), list(cast.tools), cast.remote_models) == (["odo", "sybil"], ["shout"], True)
    assert cast.models["odo"].warm_state is WarmState.COLD
    assert list(cast.rules) == ["first", "second", "peace"]
    assert cast.budget.max_for_tier(BudgetTier.WHISPER) == 7
    innkeeper, guest = cast.personas.values()
    assert (innkeeper.text, innkeeper.tools) == ("You keep the inn.", frozenset({"shout"}))
    assert (innkeeper.models, guest.models) == (("sybil", "odo"), ())
    assert cast.fallback is False
    assert [fact.text for fact in innkeeper.facts(cast.world.view(), Speaker("s"))] == ["merry"]
    assert (guest.text, guest.tools) == ("", None)


def test_a_world_may_lie_in_a_file_and_tools_in_a_list(folder: Path) -> None:
    (folder / "world.json").write_text('{"mood": "grim"}')
    cast = load_config(
        written(
            folder,
            """
            cast.world_file = "world.json"
            cast.tools = ["my_game:several"]
            models.odo = {kind = "scripted", script = "my_game:script"}
            """,
        )
    ).cast
    assert cast.world.view() == {"mood": "grim"}
    assert list(cast.tools) == ["shout", "whisper"]
    assert list(cast.personas) == ["default"]
    assert cast.models["odo"].warm_state is WarmState.HOT


def test_a_function_may_make_the_whole_cast(folder: Path) -> None:
    assert list(load_config(written(folder, 'cast.make = "my_game:whole"')).cast.models) == ["whole"]


def test_every_kind_of_model_can_be_configured(folder: Path) -> None:
    (folder / "tiny.gguf").write_bytes(b"GGUF")
    cast = load_config(
        written(
            folder,
            """
            [models.here]
            kind = "local"
            weights = "tiny.gguf"
            slots = 3
            begins_in_thought = true
            [models.there]
            kind = "openai"
            name = "qwen3"
            base_url = "http://127.0.0.1:11434/v1"
            key_env = "SOME_KEY"
            context_tokens = 4096
            slots = 1
            [models.elsewhere]
            kind = "anthropic"
            name = "claude"
            slots = 2
            """,
        )
    ).cast
    assert [type(model) for model in cast.models.values()] == [LocalModel, OpenAIModel, AnthropicModel]
    assert [model.traits.remote for model in cast.models.values()] == [False, False, True]
    assert [model.traits.slots for model in cast.models.values()] == [3, 1, 2]
    assert cast.models["there"].traits.context_tokens == 4096


@pytest.mark.parametrize(
    ("kind", "made"),
    [("scripted", ScriptedModel), ("local", LocalModel), ("openai", OpenAIModel), ("anthropic", AnthropicModel)],
)
def test_the_schema_of_models_matches_their_parameters(kind: str, made: type[Any]) -> None:
    taken = inspect.signature(made).parameters
    renamed = {"weights": "path"}
    for setting in MODELS[kind]:
        parameter = taken[renamed.get(setting.name, setting.name)]
        assert setting.required is (parameter.default is parameter.empty)
        if setting.default is not None:
            assert parameter.default == setting.default


def test_the_files_in_the_docs_are_good(folder: Path) -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))]
    blocks = [block for page in pages for block in re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    assert len(blocks) >= 3
    for block in blocks:
        file = written(folder, block)
        told = _problems_of(file)
        # Their certificates and tokens are on somebody else's disk.
        elsewhere = ("No such file", "Without tokens", "has no token")
        assert [each for each in map(str, told) if not any(words in each for words in elsewhere)] == []


def _problems_of(file: Path, environ: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    try:
        load_config(file, environ)
    except ConfigError as error:
        return error.problems
    return ()


# -- where a value comes from


def test_the_environment_overrides_a_file_and_the_command_line_both(folder: Path) -> None:
    file = written(folder, 'server = {ws_port = 1, http_port = 1, grace = 1, ledger = "a"}')
    environ = {
        "FOOTLIGHTS_SERVER__HTTP_PORT": "2",
        "FOOTLIGHTS_SERVER__GRACE": "2.5",
        "FOOTLIGHTS_SERVER__ORIGINS": '["https://a", "https://b"]',
        "FOOTLIGHTS_MODELS": "/not/a/setting",
        "FOOTLIGHTS_LOG": "debug",
        "HOME": "elsewhere",
    }
    config = load_config(file, environ, {("server", "grace"): 3.5, ("server", "ledger"): "b"})
    assert (config.ws_port, config.http_port, config.grace) == (1, 2, 3.5)
    config.policy.check_origin("https://b")
    assert config.ledger == Path("b")


def test_a_whole_cast_can_come_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    cast = load_config(
        environ={
            "FOOTLIGHTS_MODELS__ODO__KIND": "my_game:oracle",
            "FOOTLIGHTS_MODELS__ODO__ANSWER": "true story",
            "FOOTLIGHTS_PERSONAS__ODO__TEXT": "42",
            "FOOTLIGHTS_WORLD__MOOD": "7",
            "FOOTLIGHTS_WORLD__NAMES__FIRST": "Odo",
            "FOOTLIGHTS_WORLD__TWO_LINES": "1\nother = 2",
        }
    ).cast
    assert list(cast.models) == ["odo"]
    assert cast.personas["odo"].text == "42"
    assert cast.world.view() == {"mood": 7, "names": {"first": "Odo"}, "two_lines": "1\nother = 2"}


def test_a_variable_means_what_the_file_spells_with_capitals(folder: Path) -> None:
    file = written(folder, "[models.Odo]\nkind = 'my_game:oracle'\n[world]\nMood = 2\nmood = 1\nPlaces = {}")
    environ = {
        "FOOTLIGHTS_MODELS__ODO__ANSWER": "Never.",
        "FOOTLIGHTS_PERSONAS__ODO__MODELS": '["Odo"]',
        "FOOTLIGHTS_WORLD__MOOD": "3",
        "FOOTLIGHTS_WORLD__PLACES__INN": "4",
    }
    cast = load_config(file, environ).cast
    assert (list(cast.models), list(cast.personas)) == (["Odo"], ["odo"])
    assert cast.world.view() == {"mood": 3, "Mood": 2, "Places": {"inn": 4}}


def test_a_variable_that_is_nearly_a_setting_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    load_config(environ={"FOOTLIGHTS_LOG": "debug", "FOOTLIGHTS_MODELS": "/models", "FOOTLIGHTSX": "1"})
    assert caplog.messages == []
    load_config(environ={"FOOTLIGHTS_SERVER_HOST": TOKEN, "FOOTLIGHTS_GRACE": "1"})
    (told,) = caplog.messages
    assert told.startswith("not settings: FOOTLIGHTS_GRACE, FOOTLIGHTS_SERVER_HOST;")
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 3_000])
def test_a_variable_that_no_parser_bears_is_text(text: str) -> None:
    (told,) = problems(None, {"FOOTLIGHTS_SERVER__GRACE": text})
    assert told == "FOOTLIGHTS_SERVER__GRACE: server.grace must be a number of seconds, 0 or more."


def test_a_path_that_is_too_long_to_look_at_breaks_nothing_here(folder: Path) -> None:
    long = "x" * 5_000
    config = load_config(written(folder, f"[server]\nledger = '{long}'\ntrace = '{long}'"))
    assert config.ledger == folder / long


def test_paths_in_a_file_are_relative_to_it_and_others_to_where_one_is(folder: Path) -> None:
    file = written(folder, '[server]\nledger = "inn.ledger"\ntrace = "/var/traces"')
    config = load_config(file, {"FOOTLIGHTS_SERVER__TRACE": "traces"})
    assert (config.ledger, config.trace) == (folder / "inn.ledger", Path("traces"))
    assert load_config(file).trace == Path("/var/traces")


def test_a_game_has_a_ledger_of_its_own_beside_its_settings(folder: Path) -> None:
    assert load_config(written(folder, "")).ledger == folder / "game.ledger"


def test_a_token_from_the_environment_is_text_whatever_it_looks_like() -> None:
    digits = "1234567890123456"
    policy = load_config(environ={"FOOTLIGHTS_TOKENS__ALICE": digits}).policy
    assert policy.admit(f"Bearer {digits}") == User("alice")


def test_settings_say_which_user_runs_the_server_and_which_speaks_for_many(folder: Path) -> None:
    file = written(folder, "[users.alice]\noperator = true\n[users.bob]\ngame_server = true")
    environ = {"FOOTLIGHTS_TOKENS__ALICE": TOKEN, "FOOTLIGHTS_TOKENS__BOB": ANOTHER}
    policy = load_config(file, environ).policy
    alice, bob = policy.admit(f"Bearer {TOKEN}"), policy.admit(f"Bearer {ANOTHER}")
    assert (alice.operator, alice.game_server, bob.operator, bob.game_server) == (True, False, False, True)
    assert problems(written(folder, "[users.carol]\n[users.bob]\noperator = 1"), environ) == [
        "1: users.carol has no token.",
        "3: users.bob.operator must be true or false.",
    ]
    assert TOKEN not in problems(written(folder, f"[users.{TOKEN}]"), environ)[0]


def test_tls_takes_a_certificate_and_its_key(folder: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost")
    (folder / "key.pem").touch(0o600)
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    file = written(folder, '[server]\ntls_cert = "cert.pem"\ntls_key = "key.pem"')
    assert load_config(file).tls is not None


@pytest.mark.parametrize(
    ("cert", "key", "flaw"),
    [
        ("cert.pem", "other.pem", "the key is not that of the certificate."),
        ("cert.pem", "locked.pem", "the key is encrypted. The server needs one without a passphrase."),
        ("cert.pem", "cert.pem", "tls_key has no private key in PEM form."),
        ("key.pem", "key.pem", "tls_cert has no certificate in PEM form."),
        ("broken.pem", "key.pem", "the certificate or the key is damaged."),
        ("cert.pem", "no.pem", "no.pem: No such file or directory."),
    ],
)
def test_a_certificate_that_cannot_be_used_is_explained(folder: Path, cert: str, key: str, flaw: str) -> None:
    one, other = trustme.CA().issue_cert("localhost"), trustme.CA().issue_cert("localhost")
    one.private_key_pem.write_to_path(folder / "key.pem")
    one.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    other.private_key_pem.write_to_path(folder / "other.pem")
    (folder / "locked.pem").write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
    )
    (folder / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (told,) = problems(written(folder, f'[server]\ntls_cert = "{cert}"\ntls_key = "{key}"'))
    assert told == f"2: server.tls_cert and tls_key cannot be used: {flaw.replace('no.pem', f'{folder}/no.pem')}"


# -- what is wrong, and where


def test_everything_that_is_wrong_is_said_at_once_with_its_line(folder: Path) -> None:
    file = written(
        folder,
        '''# a game
        [server]
        ws_port = "many"
        prot = 3
        origins = [
            "https://a",
            3,
        ]

        [servr]
        x = 1
        [limits]
        stall_timeout = -1
        replay_turns = 1.5
        [wire]
        max_frame_bytes = 0
        [personas.odo]
        text = """
        [server]
        x = 2
        """
        models = ["nobody"]
        ''',
    )
    environ = {"FOOTLIGHTS_SERVER__HTTP_PORT": "99999"}
    assert problems(file, environ, {("server", "grace"): -1.0}) == [
        "FOOTLIGHTS_SERVER__HTTP_PORT: server.http_port must be a port: a whole number from 0 to 65535.",
        "--grace: server.grace must be a number of seconds, 0 or more.",
        f"{file}: models must name at least one model, such as [models.innkeeper].".removeprefix(f"{file}:"),
        "3: server.ws_port must be a port: a whole number from 0 to 65535.",
        f"4: server.prot is not a setting. There are: {', '.join(names(SERVER))}.",
        "5: server.origins must be a list of strings.",
        (
            "10: servr is not a setting. Did you mean server? "
            "There are: server, tokens, users, cast, analyst, notebooks, models, personas, world, "
            "budget, limits, wire, redaction, worlds, chat_feed, dexi, modes, mission, chat, ag_ui, console."
        ),
        "13: limits.stall_timeout is refused: stall_timeout is -1; it must be at least 0.",
        "14: limits.replay_turns must be a whole number.",
        "16: wire.max_frame_bytes is refused: max_frame_bytes must be more than 0.",
        "22: personas.odo.models must be some of the models, and there are none.",
    ]


ONE_MODEL = 'models.odo = {kind = "scripted", script = "my_game:script"}\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[models]\nodo = 3", "2: models.odo must be a table: [models.odo]"),
        ("server = 3", "1: server must be a table: [server]"),
        ("[server]\nhost = '0.0.0.0'", "2: server.host is refused: Without tokens anybody who can reach 0.0.0.0 could"),
        ("[server]\nhost = ''", "2: server.host must be a string that is not empty."),
        ("[server]\ngrace = nan", "2: server.grace must be a number of seconds, 0 or more."),
        ("[server]\nws_port = true", "2: server.ws_port must be a port: a whole number from 0 to 65535."),
        ("[limits]\nstall_timeout = inf", "2: limits.stall_timeout must be a number."),
        ("[server]\nhttp_port = 7600", "2: server.http_port is taken: ws_port and http_port must not be the same."),
        ("[server]\nws_port = 7601", "2: server.ws_port is taken: ws_port and http_port must not be the same."),
        ("[server]\nledger = '.'", "2: server.ledger names "),
        ("[server]\ntrace = 'my_game.py'", "2: server.trace names "),
        (
            "[server]\nledger = '~nobody-here/x'",
            "2: server.ledger names the home of a user that does not exist",
        ),
        ('[server]\nledger = "a\\u0000b"', "2: server.ledger must be the path of a file."),
        (
            '[server]\ntls_cert = "a\\u0000b"\ntls_key = "b"',
            "2: server.tls_cert must be the path of a file.",
        ),
        ('[server]\ntokens_file = "a\\u0000b"', "2: server.tokens_file must be the path of a file."),
        (f"[server]\ngrace = 1{'0' * 400}", "2: server.grace must be a number of seconds, 0 or more."),
        (f"[limits]\nstall_timeout = 1{'0' * 400}", "2: limits.stall_timeout must be a number."),
        (f"[limits]\nmax_sessions = 1{'0' * 400}", "2: limits.max_sessions must be a whole number."),
        (f"[server]\ngrace = 1{'0' * 5000}", " has a number with too many digits."),
        (f"world.x = {'[' * 3000}", " has too many nested brackets."),
        (f"{ONE_MODEL}world{'.x' * 3000} = 1", "2: world has too many nested tables."),
        ("[server]\ntls_cert = 'cert.pem'", "1: server needs tls_key too, the path of a file."),
        ("[server]\ntls_key = 'k'\ntls_cert = 'c'", "3: server.tls_cert and tls_key cannot be used: "),
        ("[server]\ntls_cert = 'my_game.py'\ntls_key = 'my_game.py'", "2: server.tls_cert and tls_key cannot be used:"),
        ("[cast]\ntools = ['shout']", "2: cast.tools must be a list of import paths, such as mygame.npcs:innkeeper."),
        ("[cast]\nremote_models = 1", "2: cast.remote_models must be true or false."),
        ("[cast]\nmake = 'my_game:number'", "2: cast.make cannot be made: TypeError at cast.py:"),
        ("[cast]\nmake = 'my_game:oops'", "2: cast.make names oops, which the module my_game does not have."),
        ("[cast]\nmake = 'my_game:script.x'", "2: cast.make names script.x, which the module my_game does not have."),
        (
            "[cast]\nmake = 'my_broken_game:x'",
            "2: cast.make names the module my_broken_game, which cannot be imported:",
        ),
        (
            "[cast]\nmake = 'my_unlawful_game:x'",
            "2: cast.make names the module my_unlawful_game, which cannot be imported: max_sessions is 0; it must",
        ),
        (
            "[cast]\nmake = 'my_needy_game:x'",
            "2: cast.make names the module my_needy_game, but a_module_that_nobody_has",
        ),
        ("[cast]\nmake = 'my_game:needy'", "2: cast.make needs a_module_that_nobody_has, which is not installed."),
        ("[cast]\nmake = 'my_game:leaving'", "2: cast.make cannot be made: SystemExit at my_game.py:"),
        ("[cast]\nmake = 'my_game:lazy'", "2: cast.make names the module my_game, which cannot be imported: ZeroDiv"),
        (
            "[cast]\nmake = 'my_leaving_game:x'",
            "2: cast.make names the module my_leaving_game, which cannot be imported: SystemExit at my_leaving_game.py",
        ),
        ("[cast]\nmake = 'builtins:dict'", "2: cast.make must name a function that returns a footlights.Cast."),
        (f"{ONE_MODEL}cast.make = 'my_game:whole'", "2: cast.make makes the whole cast: leave it out, or models."),
        ("[models.odo]\npace = 1", "1: models.odo needs kind, scripted, local, openai, anthropic or an import path."),
        ("[models.odo]\nkind = 1", "2: models.odo.kind must be scripted, local, openai, anthropic or an import path."),
        (
            "[models.odo]\nkind = 'gpt'",
            "2: models.odo.kind must be scripted, local, openai, anthropic or an import path.",
        ),
        ("[models.odo]\nkind = 'scripted'", "1: models.odo needs script, an import path"),
        ("[models.odo]\nkind = 'my_game:nobody'", "2: models.odo.kind names nobody, which the module my_game does not"),
        ("[models.odo]\nkind = 'my_game:broken'", "1: models.odo cannot be made: ZeroDivisionError at my_game.py:"),
        (
            "[models.odo]\nkind = 'builtins:dict'",
            "2: models.odo.kind must name something that makes a footlights.Model.",
        ),
        ("[models.odo]\nkind = 'local'\nweights = 'no.gguf'", "1: models.odo cannot be made: No file and no known"),
        ("[models.odo]\nkind = 'openai'\nname = 'x'\nbase_url = 'x'", "1: models.odo cannot be made:"),
        (
            "[models.o]\nkind = 'scripted'\nscript = 'my_game:no'",
            "3: models.o.script names no, which the module my_game",
        ),
        (
            f"{ONE_MODEL}cast.tools = ['my_game:number']",
            "2: cast.tools names my_game:number, which is neither a tool nor",
        ),
        (
            f"{ONE_MODEL}cast.tools = ['my_game:nothing']",
            "2: cast.tools names nothing, which the module my_game does not",
        ),
        (
            f"{ONE_MODEL}cast.tools = ['my_game:shout', 'my_game:several']",
            "2: cast cannot be made: Two tools are named",
        ),
        (
            f"{ONE_MODEL}cast.tools = ['my_game:peace']",
            "2: cast.tools names my_game:peace, which is neither a tool nor a list of tools. Did you forget @tool?",
        ),
        (
            f"{ONE_MODEL}cast.rules = ['my_game:number']",
            "2: cast.rules names my_game:number, which is neither a rule nor",
        ),
        (
            f"{ONE_MODEL}cast.rules = ['my_game:nothing']",
            "2: cast.rules names nothing, which the module my_game does not",
        ),
        (
            f"{ONE_MODEL}cast.rules = ['my_game:peace', 'my_game:again']",
            "2: cast.rules must name each rule once. Two rules are named peace: my_game:peace and my_game:again.",
        ),
        (
            f"{ONE_MODEL}cast.rules = ['my_game:laws', 'my_game:peace', 'my_game:peace']",
            "2: cast.rules must name each rule once. Two rules are named peace: my_game:peace and my_game:peace.",
        ),
        (
            f"{ONE_MODEL}cast.rules = ['my_game:alone']",
            "2: cast cannot be made: The rule 'alone' is called with 2 arguments: write def alone(world, intents), ",
        ),
        (
            "[models.odo]\nkind = 'scripted'\nscript = 'my_game:silence'",
            "1: models.odo cannot be made: The script is called with 1 argument: write def silence(prompt), not def ",
        ),
        (
            "[models.odo]\nkind = 'scripted'\nscript = 'my_game:shout'",
            "1: models.odo cannot be made: The script is not a function: it is the Tool shout.",
        ),
        (
            f"{ONE_MODEL}personas.odo.facts = 'my_game:script'",
            "2: personas.odo cannot be made: The function that makes the facts of a persona is called with 2 ",
        ),
        (f"{ONE_MODEL}cast.world_file = 'no.json'", "2: cast.world_file names "),
        (f"{ONE_MODEL}cast.world_file = 'my_game.py'", "2: cast.world_file names "),
        (f"{ONE_MODEL}world.today = 2026-01-01", " cast cannot be made: The world is not plain JSON"),
        (
            f"{ONE_MODEL}personas.odo.tools = ['dance']",
            "2: personas.odo.tools must be some of the tools, and there are",
        ),
        (f"{ONE_MODEL}analyst.documents = '.'", "2: analyst is about the tavern, and these settings have a cast of"),
        ("analyst.documents = 'nowhere'", "1: analyst.documents cannot be made: The folder of documents does not"),
        ("analyst.documents = 3", "1: analyst.documents must be the path of a folder."),
        (f"{ONE_MODEL}personas.odo.models = ['x']", "2: personas.odo.models must be some of odo."),
        (f"{ONE_MODEL}personas.odo.models = ['odo', 'odo']", "2: personas.odo.models must name each model once."),
        (f"{ONE_MODEL}personas.odo.model = 'odo'", "2: personas.odo.model is not a setting. Did you mean models?"),
        (
            f"{ONE_MODEL}personas.odo.facts = 'my_game:no'",
            "2: personas.odo.facts names no, which the module my_game does",
        ),
        (f"{ONE_MODEL}budget.deep_max = -1", "2: budget.deep_max is refused: deep_max must be at least 0."),
        (f"tokens.alice = '{TOKEN}'", "1: tokens.alice is a secret: it belongs in server.tokens_file or the"),
        ("x = ", "1: This is not TOML: Invalid value."),
        ("\n\n[server", "3: This is not TOML: Expected ']' at the end of a table declaration."),
    ],
)
def test_what_is_wrong_is_explained(folder: Path, text: str, sentence: str) -> None:
    told = problems(written(folder, text))
    assert len(told) == 1
    assert told[0].startswith(sentence)
    assert "quote me" not in told[0]
    assert TOKEN not in told[0]


def test_a_world_and_a_world_file_are_a_problem(folder: Path) -> None:
    (folder / "world.json").write_text("{}")
    text = f"{ONE_MODEL}cast.world_file = 'world.json'\nworld.mood = 1"
    assert problems(written(folder, text)) == ["2: cast.world_file and [world] are both set: use one of them."]


def test_weights_with_a_name_that_are_not_here_say_how_to_fetch_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTLIGHTS_MODELS", str(folder))
    (told,) = problems(written(folder, "[models.odo]\nkind = 'local'\nweights = 'smollm2'"))
    assert told == "1: models.odo cannot be made: smollm2 is not downloaded yet: footlights models fetch smollm2"


def test_a_file_that_is_not_there_or_no_text_is_named(folder: Path) -> None:
    assert problems(folder / "nowhere.toml") == [" cannot be read: No such file or directory."]
    (folder / "game.toml").write_bytes(b"\xff")
    assert problems(folder / "game.toml") == [" is not UTF-8 text."]


def test_a_variable_inside_of_what_is_no_table_is_named(folder: Path) -> None:
    told = problems(written(folder, "server = 3"), {"FOOTLIGHTS_SERVER__HOST": "localhost"})
    assert told == [
        "FOOTLIGHTS_SERVER__HOST: server.host is inside of something that is not a table.",
        "1: server must be a table: [server]",
    ]


def test_without_a_file_the_variable_is_named() -> None:
    assert problems(None, {"FOOTLIGHTS_MODELS__ODO__PACE": "1"}) == [
        ("FOOTLIGHTS_MODELS__ODO__PACE: models.odo needs kind, scripted, local, openai, anthropic or an import path.")
    ]
    assert problems(None, {"FOOTLIGHTS_WORLD__X": "1"}) == [
        "settings: models must name at least one model, such as [models.innkeeper]."
    ]


def as_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {as_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


NAMES = st.sampled_from(
    [
        *SECTIONS,
        *(
            each
            for settings in (SERVER, CAST, ANALYST, PERSONA, LIMITS[:3], *MODELS.values())
            for each in names(settings)
        ),
        "kind",
        "odo",
    ]
)
VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**40), 2**40),
        st.floats(),
        st.text(st.characters(min_codepoint=32, max_codepoint=126)),
        st.sampled_from(["my_game:several", "my_game:whole", "builtins:dict", "math:pi", *MODELS]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


@given(tree=st.dictionaries(NAMES, VALUES, max_size=5), environ=st.dictionaries(NAMES, st.text(), max_size=2))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_settings_are_served_or_explained(folder: Path, tree: dict[str, object], environ: dict[str, str]) -> None:
    file = written(folder, "".join(f"{json.dumps(name)} = {as_toml(value)}\n" for name, value in tree.items()))
    variables = {f"FOOTLIGHTS_SERVER__{name.upper()}": text for name, text in environ.items()}
    told = _problems_of(file, variables)
    assert all(0 <= each.line <= len(tree) for each in told)


# -- tokens


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (f"{TOKEN} alice", "line 1 cannot be used: a token is at least 16 visible ASCII characters."),
        ("# nobody yet\n", "which has no user."),
        ("alice short", "line 1 cannot be used: a token is at least 16 visible ASCII characters."),
        ("alice", "line 1 cannot be used: a token is at least 16 visible ASCII characters."),
        (f"alice {TOKEN} {TOKEN}", "line 1 cannot be used: a token is at least 16 visible ASCII characters."),
        (f"alice {TOKEN}ä", "line 1 cannot be used: a token is at least 16 visible ASCII characters."),
        (f"\nAlice {TOKEN}", "line 2 cannot be used: a user is 1 to 32 lower-case letters, digits, _ or -."),
        (f"alice {TOKEN}\nalice {ANOTHER}", "line 2 cannot be used: the user occurs twice."),
        (f"alice {TOKEN}\nbob {TOKEN}", "has one token for two users."),
    ],
)
def test_a_bad_file_of_tokens_is_explained_without_a_word_of_it(folder: Path, lines: str, sentence: str) -> None:
    (folder / "tokens").touch(0o600)
    (folder / "tokens").write_text(lines, encoding="utf-8")
    told = problems(written(folder, "[server]\ntokens_file = 'tokens'"))
    assert len(told) == 1
    assert told[0].startswith("2: server.tokens_file ")
    assert told[0].endswith(sentence)
    assert "alice" not in told[0].lower()
    assert TOKEN not in told[0]


def test_a_file_of_tokens_that_cannot_be_read_is_named(folder: Path) -> None:
    file = written(folder, "[server]\ntokens_file = 'tokens'")
    assert problems(file)[0].endswith("which cannot be read: No such file or directory.")
    (folder / "tokens").touch(0o600)
    (folder / "tokens").write_bytes(b"\xff")
    assert problems(file)[0].endswith("which cannot be read: it is not UTF-8 text.")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_tokens_that_other_users_may_open_are_refused_with_what_to_do(folder: Path, mode: int) -> None:
    (folder / "tokens").write_text(f"alice {TOKEN}")
    (folder / "tokens").chmod(mode)
    (told,) = problems(written(folder, "[server]\ntokens_file = 'tokens'"))
    assert told.startswith("2: server.tokens_file names ")
    assert told.endswith("which other users of this machine may open: give it the mode 600 (chmod 600).")
    assert TOKEN not in told


def test_a_tls_key_may_be_shared_with_a_group_only(folder: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    file = written(folder, '[server]\ntls_cert = "cert.pem"\ntls_key = "key.pem"')
    (folder / "key.pem").chmod(0o640)
    assert load_config(file).tls is not None
    (folder / "key.pem").chmod(0o644)
    (told,) = problems(file)
    assert told.startswith("3: server.tls_key names ")
    assert told.endswith("(chmod 600).")


def test_without_tokens_an_origin_of_all_is_refused(folder: Path) -> None:
    file = written(folder, "[server]\norigins = ['*']")
    (told,) = problems(file)
    assert told.startswith("2: server.origins is refused: Without tokens any page ")
    assert load_config(file, {"FOOTLIGHTS_TOKENS__ALICE": TOKEN}).policy.wants_tokens


def test_bad_tokens_in_the_environment_are_explained_without_a_word_of_them() -> None:
    assert problems(None, {"FOOTLIGHTS_TOKENS__ALICE": "short"}) == [
        "FOOTLIGHTS_TOKENS__ALICE: tokens.alice cannot be used: a token is at least 16 visible ASCII characters."
    ]
    (told,) = problems(None, {"FOOTLIGHTS_TOKENS__ALICE": TOKEN, "FOOTLIGHTS_TOKENS__BOB": TOKEN})
    assert told == "environment: tokens has one token for two users."


@pytest.mark.parametrize("lines", ["", f"[tokens]\n{TOKEN} = 'alice'"])
@pytest.mark.parametrize("variable", [TOKEN, TOKEN.upper(), f"{TOKEN}__MORE", f"MORE__{TOKEN}"])
def test_a_token_that_stands_where_the_user_should_is_not_repeated(folder: Path, lines: str, variable: str) -> None:
    told = problems(written(folder, lines), {f"FOOTLIGHTS_TOKENS__{variable}": "alice"})
    assert told
    assert not [each for each in told if TOKEN in each.lower()]


def test_one_token_for_two_names_repeats_neither_name() -> None:
    name = "0123456789abcdef"  # which may well be a token
    (told,) = problems(None, {f"FOOTLIGHTS_TOKENS__{name}": TOKEN, "FOOTLIGHTS_TOKENS__BOB": TOKEN})
    assert name not in told.lower()


def test_no_more_turns_are_kept_than_a_client_may_name(folder: Path) -> None:
    fits = "[limits]\nreplay_turns = 512\nmax_queued_turns = 3568\nmax_concurrent_turns = 16"
    assert load_config(written(folder, fits)).limits.replay_turns == 512
    (told,) = problems(written(folder, fits.replace("3568", "3569")))
    assert told.startswith("2: limits.replay_turns is too much: ")
    assert "4,097 turns" in told


# -- lines

LINES = '''a = 1

[b]
text = """
[b.c]
after = 2
"""
after = 3
# a remark
list = [
  1,

  2,
]
c.key = 4

[d]
e.f = 5
g = {x = 1}'''


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 1),
        (("b",), 3),
        (("b", "text"), 4),
        (("b", "after"), 8),
        (("b", "list"), 10),
        (("b", "c", "key"), 15),
        (("b", "c", "missing"), 15),
        (("d",), 17),
        (("d", "e", "f"), 18),
        (("d", "g", "x"), 19),
        (("nowhere",), 0),
    ],
)
def test_the_line_of_a_key_is_found_whatever_stands_around_it(path: tuple[str, ...], line: int, ending: str) -> None:
    assert line_of(LINES.replace("\n", ending), path) == line


def test_a_text_that_no_parser_bears_has_no_lines() -> None:
    assert line_of(f"x = {'[' * 3_000}", ("x",)) == 0


def test_a_long_file_is_searched_quickly() -> None:
    text = "".join(f'[personas.p{number}]\ntext = """\none\ntwo"""\n' for number in range(3_000))
    assert line_of(text, ("personas", "p2345", "text")) == 2345 * 4 + 2
