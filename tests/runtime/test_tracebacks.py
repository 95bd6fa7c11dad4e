"""Tracebacks for development: the lines of the host's files, without those of Footlights and trio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import ModelError, RegistrationError, ToolError, open_stage, traceback_text, watch_failures
from footlights.testing import take_turn
from footlights_actors import ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import Prompt
    from footlights_actors import Line


async def text_of(script: Callable[[Prompt], list[Line]]) -> str:
    """The text of the failure of a turn with this script."""
    texts: list[str] = []
    with watch_failures(lambda _, error: texts.append(traceback_text(error))):
        async with open_stage(standard_cast(ScriptedModel(script))) as stage:
            await take_turn(stage.start(), "A room?")
    (text,) = texts
    return text


def prices(_: Prompt) -> list[Line]:
    raise KeyError("attic")


async def test_only_frames_of_the_host_are_shown() -> None:
    text = await text_of(prices)
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{__file__}", line ')
    assert lines[1].endswith(", in prices")
    assert lines[2] == '    raise KeyError("attic")'
    assert lines[-1] == "KeyError: 'attic'"
    assert text.count("  File ") == 1


async def test_what_the_exception_was_raised_from_is_shown_too() -> None:
    def wrapping(prompt: Prompt) -> list[Line]:
        try:
            return prices(prompt)
        except KeyError as error:
            raise ValueError("no such room") from error

    text = await text_of(wrapping)
    assert "KeyError: 'attic'" in text
    assert text.endswith("ValueError: no such room\n")
    assert text.count("  File ") == 3


async def test_an_error_that_a_host_raises_on_purpose_is_shown_with_its_line() -> None:
    def refusing(_: Prompt) -> list[Line]:
        raise ModelError("no model today")

    text = await text_of(refusing)
    assert 'raise ModelError("no model today")' in text
    assert text.endswith("footlights.errors.ModelError: no model today\n")


async def test_an_error_of_footlights_itself_is_one_sentence() -> None:
    def raised(error: Exception) -> Exception:
        namespace = {"__name__": "footlights.somewhere", "error": error}
        try:
            exec("raise error", namespace)
        except type(error):
            return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
        raise AssertionError

    told = traceback_text(raised(RegistrationError("A model needs a name.")))
    assert told == "footlights.errors.RegistrationError: A model needs a name.\n"
    assert traceback_text(raised(ValueError("ours"))).count("  File ") == 1, "a bug of Footlights shows all it has"


def test_of_a_group_every_member_is_shown() -> None:
    wrapped = ToolError("The tool failed.")
    wrapped.__cause__ = KeyError("attic")
    text = traceback_text(ExceptionGroup("many", [ValueError("one"), ExceptionGroup("more", [wrapped])]))
    wanted = "ValueError: one\nfootlights.errors.ToolError: The tool failed. (KeyError at unknown place)\n"
    assert text == wanted
