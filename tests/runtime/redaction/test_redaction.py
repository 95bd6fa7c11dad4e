"""Secrets are taken out of texts and values, what only looks like one stays, and `applied` tells the truth."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import RegistrationError
from footlights.redaction.patterns import STANDARD_PATTERNS, SecretPattern
from footlights.redaction.redactor import MAX_DEPTH, STANDARD_FIELDS, Redacted, Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import JsonValue

R = Redactor()

# Put together here, so that no file holds anything that a scanner takes for a real one.
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
OPENAI = "sk-" + "proj-abcdefghijklmnop1234"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".abc-_"
PEM = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE " + "KEY-----"
PGP = "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\nlQOY\n\nabc=\n-----END PGP PRIVATE " + "KEY BLOCK-----"

SECRETS = [
    (f"use {OPENAI} now", "use [redacted] now"),
    (f"{AWS}, as said", "[redacted], as said"),
    (f"({GITHUB})", "([redacted])"),
    ("glpat-" + "abcdefghij0123456789", "[redacted]"),
    ("xoxb-" + "123456789012-abcdef", "[redacted]"),
    ("AIza" + "0123456789abcdefghijABCDEFGHIJ01234", "[redacted]"),
    (f"jwt {JWT}.", "jwt [redacted]."),
    (f"before\n{PEM}\nafter", "before\n[redacted]\nafter"),
    (PEM.partition("-----END")[0], "[redacted]"),
    ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
    ("curl -H 'bearer abcdefgh1'", "curl -H 'bearer [redacted]'"),
    ("password=hunter2&user=ada", "password=[redacted]&user=ada"),
    ("Pass-Phrase : hunter2", "Pass-Phrase : [redacted]"),
    ("DB_PASSWORD='a b c' next", "DB_PASSWORD='[redacted]' next"),
    ('{"api_key": "x\\"y", "n": 1}', '{"api_key": "[redacted]", "n": 1}'),
    ("X-Api-Key: 99", "X-Api-Key: [redacted]"),
    ("token: password: hunter2", "token: password: [redacted]"),
    ("token=YWJj=", "token=[redacted]"),
    ("https://ada:hunter2@example.org/x", "https://ada:[redacted]/x"),
    ("Write to ada.lovelace+x@mail.example.org.", "Write to [redacted]."),
    ("søren@exämple.dk", "[redacted]"),
    ("call +44 20 7946 0958 now", "call [redacted] now"),
    ("tel:+442079460958", "tel:[redacted]"),
    ("(555) 123-4567", "[redacted]"),
    ("555-123-4567 or 555.123.4567", "[redacted] or [redacted]"),
    ("020 7946 0958", "[redacted]"),
    ("Phone 5551234567", "Phone [redacted]"),
    ("card 4111 1111 1111 1111 ok", "card [redacted] ok"),
    ("378282246310005", "[redacted]"),
    ("card:4111111111111111", "card:[redacted]"),
    ("card 4111.1111.1111.1111", "card [redacted]"),
    ("call:555-123-4567", "call:[redacted]"),
    ('{"phone": "5551234567"}', '{"phone": "[redacted]"}'),
    ('password="never closed, and then', 'password="[redacted]'),
    ("password='never closed\\", "password='[redacted]"),
    (r"{\"password\": \"never closed", r"{\"password\": \"[redacted]"),
    ("password='it''s' next", "password='[redacted]' next"),
    (f"private_key: {PEM}\nafter", "private_key: [redacted]\nafter"),
    (f"private_key: {PGP}", "private_key: [redacted]"),
    ("my api key: abc", "my api key: [redacted]"),
    ("API Key = abc def", "API Key = [redacted]"),
    ("encryption key: abc", "encryption key: [redacted]"),
    ("token\t\t\t\t\t=\tabc", "token\t\t\t\t\t=\t[redacted]"),
    (r"{\"password\": \"a\\\"b\", \"n\": \"1\"}", r"{\"password\": \"[redacted]\", \"n\": \"1\"}"),
    (r"{\\\"password\\\": \\\"ab\\\"}", r"{\\\"password\\\": \\\"[redacted]\\\"}"),
    ("Authorization: Token 9944b0 9919, x", "Authorization: [redacted]"),
    ("Cookie: sid=abc; auth=def\nnext", "Cookie: [redacted]\nnext"),
    ("Set-Cookie: a=1; session=zz; Path=/\r\nnext", "Set-Cookie: [redacted]\r\nnext"),
    ("cookie=abc&user=ada", "cookie=[redacted]&user=ada"),
    ("password: correct horse battery staple", "password: [redacted]"),
    ("password: it's a&b <c>, user: ada", "password: [redacted], user: ada"),
    ("(password: a,b)c) <b>token: x</b>", "(password: [redacted]) <b>token: [redacted]</b>"),
    ("password: +44 20 7946 0958 x", "password: [redacted]"),
    ("password: hunter2 token: abc", "password: [redacted]"),
    ("password:\n  hunter2\nnext", "password:\n  [redacted]\nnext"),
    ("postgres://u:p@ss@host/db", "postgres://u:[redacted]@host/db"),
    ("password => hunter2", "password => [redacted]"),
    ("_token=abc", "_token=[redacted]"),
    ("password=<hunter2> password=;hunter2", "password=[redacted]> password=[redacted]"),
    ("<db.password a='1'>hunter2</db.password>", "<db.password a='1'>[redacted]</db.password>"),
    ("<token><![CDATA[a<b]]></token>", "<token>[redacted]</token>"),
    ("tokens: abc, def", "tokens: [redacted]"),
    ("passwords=hunter2", "passwords=[redacted]"),
    ('"api_keys": ["a", "b"], 1', '"api_keys": "[redacted]", 1'),
    ('"secrets": {"a": "b"}, 1', '"secrets": "[redacted]", 1'),
    ("Bearer abcdefghijklmnopqrstuvwxyz", "Bearer [redacted]"),
    ("bearer abcdeFgh", "bearer [redacted]"),
    ("password: sunshine", "password: [redacted]"),
    ("password for prod: m00nl1ght#7", "password for prod: [redacted]"),
    ("verification code: 77 41 09", "verification code: [redacted]"),
    ("NRAK-" + "5CB0H072O8HEFCE3T78ERHZTQ3T", "[redacted]"),
    ("pat4jmPbV1F9uMDiD." + "72b005d284ba6492" * 4, "[redacted]"),
    ("pwd = letmein!", "pwd = [redacted]"),
    ('{"password": "letmein"}', '{"password": "[redacted]"}'),
    ("Kennwort: geheim99", "Kennwort: [redacted]"),
    ("contraseña: perro123", "contraseña: [redacted]"),
    ("password: valid hunter2", "password: [redacted]"),
    ("secret: at noon7", "secret: [redacted]"),
    ("Set-Cookie: theme=dark; sid=abc12", "Set-Cookie: [redacted]"),
    ("deploy key: k9-lima", "deploy key: [redacted]"),
]

HARMLESS = [
    "Use 123456 as the seed of the generator.",
    "const token = process.env.API_TOKEN",
    "The hotline 0800 123 4567 is free.",
    *("", "Hello.", "t1-000005", "s12-000123", "t1-000005 to t1-000019", "run 000005-000006"),
    "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "blake3:" + "4111111111111111" * 4,
    *("2026-11-16", "2026-11-16T15:33:32.123456Z", "16.11.2026 15:33", "10/12/2026", "15:33:32", "2020-2024"),
    *("7", "12345678", "1763307212000000000", "1,234,567", "1 234 567 890", "100 200 3000", "3.14159265", "+12 %"),
    *("1e-10", "0.123456789012", "200 people, 12 weeks, 0.41 to 0.63", "192.168.100.200", "v1.2.3", "week 01-12 2026"),
    "550e8400-e29b-41d4-a716-446655440000",
    "4111111111111112 is no card, it fails the check",
    *("max_tokens: 512", "prompt_tokens=12", "the secret is out", "a basic understanding of bearers", "password="),
    *("tokens used: 12", "<max_tokens>512</max_tokens>", "<token></token>", "<b>token</b>", "basic responsibilities"),
    *("https://example.org:8080/a@b", "12:555-123-4567", "token:\nnext line", "ratio 4:3, 16:9"),
    *("someone@home", "sk-ip", "phone 12", "a risk-management-plan-for-everyone"),
    *("password: expired", "Password: incorrect, try again", "api key: see 1Password", "password: (unchanged)"),
    *("authorization: pending", "credentials: missing", 'fetch(url, {credentials: "include"})', "cookie: expired"),
    *("Set-Cookie: theme=dark; Path=/", "Cookie: lang=en", "App key: F5 to refresh", "deploy key: read-only"),
    *("recovery key: not set", "passphrase: (empty)", "Mot de passe : oublié ?", "Passwort: mindestens 10 Zeichen"),
    *("Contraseña: debe tener 8 caracteres", "senha: esqueceu?", "wachtwoord: vergeten", "password: sent separately"),
    *(
        "token: valid until Friday",
        "Token: revoked",
        '{"password": "This field is required."}',
        'password: "can\'t be blank"',
    ),
    *(
        "PASSWORD=<set in the CI settings>",
        "secret: /etc/ssl/private",
        "private_key = ~/.ssh/id_rsa",
        "access key: Alt+P",
    ),
    *("encryption key: AES-256", "Signing key: RS256", "const token = await auth.getIdToken();"),
    "The order number is 4539578763621486 and it shipped today.",
    "Your code compiles in 123456 ms.",
    *(
        "Password rules: 8-64 characters",
        "password reset link: https://x.example/1",
        "Password policy: rotate every 60d",
    ),
    "The security code: 12.11.2025",
    "call +1 800 555 0199 free",
]


@pytest.mark.parametrize(("text", "left"), SECRETS)
def test_secrets_are_taken_out(text: str, left: str) -> None:
    assert R.text(text) == Redacted(left, applied=True)
    assert R.text(left) == Redacted(left, applied=False)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert R.text(text) == Redacted(text, applied=False)
    assert R.value([text]).applied is False


def test_values_lose_their_secrets_however_deep() -> None:
    given: JsonValue = {
        "user": "ada@example.org",
        "Access-Token": 1234,
        "nested": [{"PASSWORD": ["a", "b"], "ok": [1, 2.5, True, None]}, "call +44 20 7946 0958"],
        "token": None,
        "secret": False,
        "card": 4111111111111111,
    }
    left = R.value(given)
    assert left.applied
    assert left.value == {
        "user": "[redacted]",
        "Access-Token": "[redacted]",
        "nested": [{"PASSWORD": "[redacted]", "ok": [1, 2.5, True, None]}, "call [redacted]"],
        "token": None,
        "secret": False,
        "card": "[redacted]",
    }


def test_names_that_are_secrets_are_taken_out_and_no_member_is_lost() -> None:
    left = R.value({"ada@example.org": 1, "bob@example.org": 2, "[redacted]": 3})
    assert left.value == {"[redacted]": 1, "[redacted]+": 2, "[redacted]++": 3}
    assert left.applied


@pytest.mark.parametrize("value", [None, True, 0, 1.5, math.nan, "x", [], {}, [math.nan], {"a": [{"b": "c"}]}])
def test_what_holds_no_secret_is_left_as_it_is(value: JsonValue) -> None:
    left = R.value(value)
    assert left.applied is False
    assert left.value is value or left.value == value


def test_what_is_nested_too_deep_is_taken_out_as_a_whole() -> None:
    value: JsonValue = "x"
    for _ in range(MAX_DEPTH):
        value = [value]
    assert R.value(value).applied is False
    assert R.value([value]).applied is True
    for _ in range(100_000):
        value = [value]
    assert R.value(value).applied is True


@pytest.mark.parametrize("name", [*STANDARD_FIELDS, "API-KEY", "x_api.key", "myPassword", "AWS_SECRET_ACCESS_KEY"])
def test_fields_are_known_by_name_whatever_their_case_and_punctuation(name: str) -> None:
    assert R.value({name: "x"}).value == {name: "[redacted]"}


def test_a_host_brings_its_own_patterns_and_names() -> None:
    patterns = (
        *STANDARD_PATTERNS,
        SecretPattern("room", r"room (\d+)"),
        SecretPattern("code", r"X\d+", lambda x: x != "X1"),
    )
    mine = Redactor(patterns=patterns, fields=["Maiden Name"])
    assert mine.text("room 7, X1, X2, ada@example.org") == Redacted("room [redacted], X1, [redacted], [redacted]", True)
    assert mine.value({"maiden_name": "x", "password": "y"}).value == {"maiden_name": "[redacted]", "password": "y"}


def test_a_redactor_without_patterns_and_names_takes_out_nothing() -> None:
    assert Redactor(patterns=(), fields=()).text("password=hunter2 ada@example.org").applied is False


def test_if_the_group_took_no_part_in_a_match_all_of_the_match_is_taken_out() -> None:
    mine = Redactor(patterns=[SecretPattern("odd", r"ticket (\d+)|SECRET-\w+")])
    assert mine.text("SECRET-abc and ticket 77") == Redacted("[redacted] and ticket [redacted]", applied=True)


def test_plurals_hide_everything_but_numbers() -> None:
    given: JsonValue = {"tokens": ["a"], "api_keys": {"x": "y"}, "max_tokens": 512, "total_tokens": 1.5}
    left = R.value(given).value
    assert left == {"tokens": "[redacted]", "api_keys": "[redacted]", "max_tokens": 512, "total_tokens": 1.5}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: SecretPattern("broken", "("), "not a regular expression"),
        (lambda: SecretPattern("empty", "x*"), "empty text"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        make()


pieces = st.sampled_from(
    [each for text, _ in SECRETS for each in text.split(" ")]
    + ["[redacted]", " ", "=", ":", '"', "'", "token", "+", "@", "4"]
)
texts = st.one_of(
    st.text(max_size=80), st.lists(pieces, max_size=12).map("".join), st.lists(pieces, max_size=12).map(" ".join)
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


@given(texts)
def test_applied_is_true_exactly_if_the_text_changed(text: str) -> None:
    left = R.text(text)
    assert left.applied == (left.text != text)
    assert left == R.text(text)


@given(values)
def test_applied_is_true_exactly_if_the_value_changed(value: JsonValue) -> None:
    left = R.value(value)
    assert left.applied == (repr(left.value) != repr(value))


@given(
    st.text(max_size=60), st.sampled_from([OPENAI, AWS, GITHUB, JWT, "ada@example.org", "4111111111111111"]), st.text()
)
def test_no_known_shape_gets_through_between_other_words(before: str, secret: str, after: str) -> None:
    assert secret not in R.text(f"{before} {secret} {after}").text


HOSTILE = [
    *("a", "a@", "a.", "eyJ-", "eyJaaaaaaaa.", "+1 ", "1", "1 ", "4-", "token=", "token='", 'token="', "password:"),
    *(
        "://a:",
        "-----BEGIN PRIVATE " + "KEY-----",
        "bearer ",
        "sk-",
        "(0",
        "0 ",
        "x=",
        "a@b.",
        "ghp_",
        "tel ",
        'token: \\"',
    ),
    *("<token>", "<a><![CDATA[", "token: [", "token:\n ", "://a:@", "token: a, ", "'=", "\\", '\\"=', " ", "key => "),
    *(
        "password is ",
        "seed: aaa bbb ",
        "key=",
        "my ",
        "mysql -p",
        "01 23 ",
        "ssn ",
        "DE12 3456 ",
        "otp ",
        "sess=",
        "login ",
    ),
    *(
        "user from ",
        "123.456.789-09 ",
        "12345678A ",
        "code ",
        "pass:",
        "echo ",
        "curl -u ",
        "login(a,'b','",
        "//a:",
        "\u5bc6\u7801",
    ),
    *("cookie: ", "token: [redacted]", "password'", 'token:\\"a', "<password a"),
]

_PROGRAM = """
import sys
from footlights.redaction.redactor import Redactor
for unit in sys.argv[2:]:
    Redactor().text(unit * (int(sys.argv[1]) // len(unit)))
"""


@pytest.mark.parametrize(
    ("size", "units"),
    [
        pytest.param(20_000, HOSTILE, id="20 kilobytes of each"),
        pytest.param(10_000_000, ["".join(HOSTILE)], id="10 megabytes", marks=pytest.mark.long),
    ],
)
def test_hostile_text_is_done_soon(size: int, units: list[str]) -> None:
    """It takes some microseconds a character; with a pattern that backtracks, one unit alone would take minutes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60 if size < 1_000_000 else 300,) * 2)

    subprocess.run([sys.executable, "-c", _PROGRAM, str(size), *units], preexec_fn=limit, check=True)
