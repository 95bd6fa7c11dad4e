"""Access policy: tokens, origins, ownership of sessions, and rate limits."""

from __future__ import annotations

import hmac
from contextlib import suppress
from hmac import compare_digest

import pytest

from footlights.errors import RegistrationError, UnknownSession
from footlights.params import SessionParams
from footlights_transports.access.policy import AccessPolicy, RateLimiter, User, WireLimits, is_loopback
from footlights_transports.errors import RateLimited, Unauthorized

ANN, BOB = "a" * 16, "b" * 16


def test_a_token_names_its_user() -> None:
    policy = AccessPolicy({"ann": ANN, "bob": BOB})
    assert policy.wants_tokens
    assert policy.admit(f"Bearer {ANN}") == User("ann")
    assert policy.admit(f"bearer  {BOB} ") == User("bob")


@pytest.mark.parametrize(
    "shown", [None, "", ANN, f"Basic {ANN}", "Bearer", "Bearer ", f"Bearer {ANN}x", "Bearer \udc80"]
)
def test_anything_else_names_no_user_and_is_not_repeated(shown: str | None) -> None:
    with pytest.raises(Unauthorized) as refused:
        AccessPolicy({"ann": ANN}).admit(shown)
    assert ANN not in str(refused.value)


@pytest.mark.parametrize("shown", [ANN, BOB, ANN[:-1], ANN + BOB, "", "x"])
def test_how_long_it_takes_to_admit_somebody_says_nothing_of_the_tokens(
    monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    compared: list[tuple[int, int]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return compare_digest(one, other)

    policy = AccessPolicy({"ann": ANN, "bob": BOB})
    monkeypatch.setattr(hmac, "compare_digest", compare)
    with suppress(Unauthorized):
        policy.admit(f"Bearer {shown}")
    # All of them, whoever it is, and the same number of bytes each time: never the tokens themselves.
    assert compared == [(32, 32), (32, 32)]


@pytest.mark.parametrize("shown", [None, "", "Bearer anything"])
def test_without_tokens_there_is_one_anonymous_user(shown: str | None) -> None:
    assert not AccessPolicy().wants_tokens
    assert AccessPolicy().admit(shown) == User()


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ({"ann": "short"}, "A token must have at least 16"),
        ({ANN: "ann"}, "A token must have at least 16"),
        ({ANN.upper(): "ann"}, "lower-case"),
        ({"Ann": ANN}, "lower-case"),
        ({"": ANN}, "lower-case"),
        ({"a:b": ANN}, "lower-case"),
        ({"x" * 33: ANN}, "lower-case"),
        ({"ann": ANN, "bob": ANN}, "the same token"),
    ],
)
def test_tokens_that_cannot_work_are_refused_and_not_repeated(tokens: dict[str, str], why: str) -> None:
    with pytest.raises(RegistrationError, match=why) as refused:
        AccessPolicy(tokens)
    said = str(refused.value)
    # Neither may be repeated: a user and a token may stand in each other's place.
    assert not any(each and each in said.split() for pair in tokens.items() for each in pair)
    assert ANN[:8] not in said.lower()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"])
def test_without_tokens_this_machine_may_be_served(host: str) -> None:
    assert is_loopback(host)
    AccessPolicy().check_address(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", ""])
def test_without_tokens_no_other_machine_may_be_served(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(RegistrationError, match="configure tokens"):
        AccessPolicy().check_address(host)
    AccessPolicy({"ann": ANN}).check_address(host)


def test_only_pages_on_the_list_may_connect_and_programs_may() -> None:
    policy = AccessPolicy(origins=["https://game.example"])
    policy.check_origin(None)
    policy.check_origin("https://game.example")
    for origin in ("https://evil.example", "http://game.example", "null", ""):
        with pytest.raises(Unauthorized):
            policy.check_origin(origin)
    AccessPolicy({"ann": ANN}, origins=["*"]).check_origin("https://evil.example")
    with pytest.raises(RegistrationError, match="configure tokens"):
        AccessPolicy(origins=["*"])
    with pytest.raises(Unauthorized):
        AccessPolicy({"ann": ANN}).check_origin("http://localhost")


def test_sessions_carry_their_users_names() -> None:
    policy, ann = AccessPolicy({"ann": ANN}), User("ann")
    assert policy.named_for(ann, SessionParams(session_id="inn")).session_id == "ann:inn"
    assert policy.named_for(ann, SessionParams(session_id="ann:inn")).session_id == "ann:inn"
    assert policy.named_for(ann, SessionParams(session_id="bob:inn")).session_id == "ann:bob:inn"
    assert policy.named_for(ann, SessionParams()).session_id is None
    assert policy.named_for(User(), SessionParams(session_id="inn")).session_id == "inn"


def test_a_user_sees_only_its_own_sessions() -> None:
    policy, ann = AccessPolicy({"ann": ANN}), User("ann")
    policy.check_owner(ann, "ann:inn")
    for foreign in ("bob:inn", "ann", "anna:inn", "s1-000001"):
        with pytest.raises(UnknownSession):
            policy.check_owner(ann, foreign)
    policy.check_owner(User(), "anything")


def test_pace_allows_a_burst_and_then_so_many_a_second() -> None:
    limiter = RateLimiter(2.0, 3, now=0.0)
    for _ in range(3):
        limiter.take(0.0)
    with pytest.raises(RateLimited, match="2 commands a second"):
        limiter.take(0.25)
    limiter.take(0.5)
    with pytest.raises(RateLimited):
        limiter.take(0.5)
    for _ in range(3):
        limiter.take(100.0)
    with pytest.raises(RateLimited):
        limiter.take(100.0)


@pytest.mark.parametrize("per_second", [1 / 49, 0.1, 0.3, 3.0, 1_000.0])
def test_a_client_that_waits_for_the_stated_time_is_not_refused(per_second: float) -> None:
    limiter, now = RateLimiter(per_second, 1, now=0.1), 0.1
    for _ in range(20):
        limiter.take(now)
        with pytest.raises(RateLimited) as refused:
            limiter.take(now)
        wait = refused.value.retry_after
        with pytest.raises(RateLimited):
            limiter.take(now + wait - 1)
        now += wait


@pytest.mark.parametrize("name", ["max_frame_bytes", "handshake_timeout", "commands_per_second", "keep_alive"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_must_allow_something(name: str, value: float) -> None:
    with pytest.raises(RegistrationError, match=name):
        WireLimits(**{name: value})  # type: ignore[arg-type]


def test_sessions_may_be_kept_for_ever_and_not_for_less_than_no_time() -> None:
    assert WireLimits(session_idle_seconds=0).session_idle_seconds == 0
    for value in (-1.0, float("nan")):
        with pytest.raises(RegistrationError, match="session_idle_seconds must be 0 or more"):
            WireLimits(session_idle_seconds=value)


@pytest.mark.parametrize("per_second", [1 / 49, 0.3, 1_000.0])
def test_a_pace_says_when_the_next_one_may_come_without_taking_it(per_second: float) -> None:
    limiter = RateLimiter(per_second, 2, now=0.0)
    assert limiter.seconds_until_next(0.0) == 1
    for _ in range(2):
        limiter.take(0.0)
    wait = limiter.seconds_until_next(0.0)
    assert wait == limiter.seconds_until_next(0.0)
    with pytest.raises(RateLimited) as refused:
        limiter.take(0.0)
    assert refused.value.retry_after == wait
    limiter.take(float(wait))
