"""A failure is named by a code or a class, and what it says stays inside."""

from __future__ import annotations

import re
from typing import TypeVar

import pytest

from footlights.errors import (
    Busy,
    ExtraMissing,
    FootlightsError,
    KeyMissing,
    ModelError,
    ModelLoadFailed,
    ModelTimeout,
    ModelUnreachable,
    PromptTooLarge,
    StreamError,
    TooLarge,
    ToolError,
)
from footlights.events import ErrorInfo, InterruptReason
from footlights.failure_texts import FAILURE_TEXTS, MAX_SENTENCE_CHARS, UNSPECIFIC
from footlights.failures import describe, explain

E = TypeVar("E", bound=BaseException)

SECRET = "my name is Edda"


class RudePlayer(Exception):
    pass


def raised(error: E, cause: BaseException | None = None) -> E:
    """The error as it is when it has been raised, and has a place."""
    if cause is not None:
        error.__cause__ = raised(cause)
    with pytest.raises(type(error)):
        raise error
    return error


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (ModelError(SECRET), InterruptReason.MODEL_ERROR, "model_error"),
        (ToolError(SECRET), InterruptReason.TOOL_ERROR, "tool_error"),
        (TooLarge(SECRET), InterruptReason.WORKLOAD_ERROR, "too_large"),
        (Busy(SECRET), InterruptReason.WORKLOAD_ERROR, "busy"),
        (FootlightsError(SECRET), InterruptReason.WORKLOAD_ERROR, "internal"),
        (RudePlayer(SECRET), InterruptReason.WORKLOAD_ERROR, "RudePlayer"),
        (KeyboardInterrupt(SECRET), InterruptReason.WORKLOAD_ERROR, "KeyboardInterrupt"),
    ],
)
def test_a_failure_is_explained_by_its_kind(error: BaseException, reason: InterruptReason, detail: str) -> None:
    assert explain(raised(error))[:2] == (reason, detail)


@pytest.mark.parametrize(
    ("wrapper", "reason"),
    [(ModelError(SECRET), InterruptReason.MODEL_ERROR), (ToolError(SECRET), InterruptReason.TOOL_ERROR)],
)
def test_who_failed_comes_from_the_wrapper_and_how_from_its_cause(
    wrapper: FootlightsError, reason: InterruptReason
) -> None:
    assert explain(raised(wrapper, RudePlayer(SECRET)))[:2] == (reason, "RudePlayer")


def test_a_cause_is_followed_to_its_end_through_wrappers() -> None:
    assert explain(raised(ModelError(), raised(ToolError(), TooLarge())))[:2] == (
        InterruptReason.MODEL_ERROR,
        "too_large",
    )


def test_the_cause_of_any_other_error_is_its_own_matter() -> None:
    assert explain(raised(RudePlayer(SECRET), KeyError(SECRET)))[:2] == (InterruptReason.WORKLOAD_ERROR, "RudePlayer")


@pytest.mark.parametrize(
    ("errors", "reason", "detail"),
    [
        ([RudePlayer(), ToolError(), ModelError()], InterruptReason.MODEL_ERROR, "model_error"),
        ([RudePlayer(), ToolError()], InterruptReason.TOOL_ERROR, "tool_error"),
        ([RudePlayer(), ValueError()], InterruptReason.WORKLOAD_ERROR, "RudePlayer"),
    ],
)
def test_of_many_failures_the_most_telling_is_given(
    errors: list[Exception], reason: InterruptReason, detail: str
) -> None:
    nested = ExceptionGroup(SECRET, [errors[0], ExceptionGroup(SECRET, errors[1:])])
    assert explain(raised(nested))[:2] == (reason, detail)


def test_a_description_names_every_failure_and_its_place() -> None:
    inner = ExceptionGroup(SECRET, [raised(TooLarge(SECRET))])
    group = ExceptionGroup(SECRET, [raised(RudePlayer(SECRET)), inner])
    described = describe(raised(group))
    assert re.fullmatch(r"RudePlayer at test_failures.py:\d+; too_large at test_failures.py:\d+", described)


def test_a_wrapped_failure_is_described_where_it_began() -> None:
    wrapped = ModelError(SECRET)
    wrapped.__cause__ = raised(RudePlayer(SECRET))
    assert re.fullmatch(r"RudePlayer at test_failures.py:\d+", describe(wrapped))


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert describe(RudePlayer(SECRET)) == "RudePlayer at unknown place"


@pytest.mark.parametrize(
    "error",
    [
        raised(RudePlayer(SECRET)),
        raised(ModelError(SECRET), RudePlayer(SECRET)),
        raised(ExceptionGroup(SECRET, [ToolError(SECRET), RudePlayer(SECRET)])),
    ],
)
def test_nothing_that_an_error_says_gets_out(error: BaseException) -> None:
    told = f"{explain(error)} {describe(error)}"
    assert not [word for word in SECRET.split() if word in told]


def test_an_error_is_placed_where_it_is_named() -> None:
    error = raised(RudePlayer())
    error.__cause__ = KeyError("never raised, so it has no place")
    assert re.fullmatch(r"RudePlayer at test_failures.py:\d+", describe(error))


def test_an_error_that_is_its_own_cause_is_explained() -> None:
    error = ModelError()
    error.__cause__ = error
    assert explain(error)[:2] == (InterruptReason.MODEL_ERROR, "model_error")


# -- what people are told


SHOWN = "inn.example requires a key, and $INN_KEY is not set (HTTP 401)."


class Hungry(ModelUnreachable):
    code = "hungry"
    sentence = "The model has not eaten."


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ModelError(SECRET), "model_error", None),
        (ModelError(sentence=SHOWN), "model_error", SHOWN),
        (KeyMissing(SECRET, sentence=SHOWN), "model_key_missing", SHOWN),
        (KeyMissing(SECRET), "model_key_missing", None),
        (PromptTooLarge(), "prompt_too_large", None),
        (ModelTimeout(), "model_timeout", None),
        (Hungry(SECRET), "hungry", Hungry.sentence),
        (raised(ModelError(SECRET), RudePlayer(SECRET)), "model_error", None),
        (raised(ModelError(SECRET), TooLarge(SECRET)), "too_large", None),
        (raised(ModelLoadFailed(), OSError(SECRET)), "model_load_failed", None),
        (raised(ModelLoadFailed(), ModelError(SECRET)), "model_load_failed", None),
        (raised(ModelLoadFailed(), ModelError(sentence=SHOWN)), "model_load_failed", SHOWN),
        (raised(ModelLoadFailed(), ExtraMissing(sentence=SHOWN)), "model_extra_missing", SHOWN),
        (raised(StreamError(SECRET, sentence="It failed."), KeyMissing(sentence=SHOWN)), "model_key_missing", SHOWN),
        (ToolError(SECRET), "tool_error", None),
        (RudePlayer(SECRET), "workload_error", None),
        (TooLarge(SECRET), "too_large", None),
        (FootlightsError(SECRET), "workload_error", None),
        (ExceptionGroup(SECRET, [RudePlayer(SECRET), ModelUnreachable(sentence=SHOWN)]), "model_unreachable", SHOWN),
    ],
)
def test_a_failure_has_a_code_and_a_sentence_that_was_written_to_be_shown(
    error: BaseException, code: str, sentence: str | None
) -> None:
    assert explain(error)[2] == ErrorInfo(code, sentence or FAILURE_TEXTS[code])


@pytest.mark.parametrize(
    "sentence", ["", "two\nlines", "x" * (MAX_SENTENCE_CHARS + 1), "\ud800", "\x1b[31mred", 7, None]
)
def test_a_sentence_that_is_not_one_short_line_is_not_shown(sentence: object) -> None:
    error = ModelUnreachable()
    vars(error)["sentence"] = sentence
    assert explain(error)[2] == ErrorInfo("model_unreachable", ModelUnreachable.sentence)


def test_every_failure_has_a_sentence_of_its_own() -> None:
    assert len(set(FAILURE_TEXTS.values())) == len(FAILURE_TEXTS)
    assert all(text.endswith((".", ")")) and len(text) <= MAX_SENTENCE_CHARS for text in FAILURE_TEXTS.values())
    assert set(UNSPECIFIC.values()) <= set(FAILURE_TEXTS)


def test_the_log_has_the_sentence_of_the_driver_and_no_other_words() -> None:
    error = raised(ModelLoadFailed(SECRET), KeyMissing(SECRET, sentence=SHOWN))
    assert re.fullmatch(rf"model_key_missing at test_failures.py:\d+: {re.escape(SHOWN)}", describe(error))
