"""Phrases that claim to remember a chat: they are counted, they decide nothing, and here they cannot be true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights import Fact, Persona, TurnSummary, open_stage
from footlights.memory_claims import MAX_CHARS, MEMORY_CLAIMS, memory_claims
from footlights_actors import Line, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import Prompt


@pytest.mark.shows("feed-50", "feed-51", "feed-52")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("As we discussed earlier, the attic is free.", "as_we_discussed"),
        ("as we\n discussed  EARLIER", "as_we_discussed"),
        ("As I mentioned before, no.", "as_we_discussed"),
        ("As we've already agreed previously: two coins.", "as_we_discussed"),
        ("As previously discussed, two coins.", "as_we_discussed"),
        ("Based on previous messages, you like ale.", "previous_messages"),
        ("Based on our earlier conversation you like ale.", "previous_messages"),
        ("According to your last message ...", "previous_messages"),
        ("You asked me before to keep a room.", "you_asked_before"),
        ("You\u2019ve asked me earlier.", "you_asked_before"),
        ("Well, you previously told me so.", "you_asked_before"),
        ("Earlier, you asked for stew.", "you_asked_before"),
    ],
)
def test_a_phrase_and_its_close_variants_are_found(text: str, name: str) -> None:
    assert memory_claims(text) == (name,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "As we say here, stew is stew.",
        "He discussed it earlier with the miller.",
        "You asked for ale. One coin.",
        "Come before noon, as agreed.",
        "A message came from the last rider.",
        "You wonder what was here before? A mill.",
        "Was earlier stew better?",
    ],
)
def test_what_claims_nothing_is_not_counted(text: str) -> None:
    assert memory_claims(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "As we discussed, two coins.",
        "Like we discussed earlier, two coins.",
        "Based on the messages above, two coins.",
        "You asked me to do this before.",
    ],
)
def test_looser_claims_are_not_counted_as_the_docs_say(text: str) -> None:
    assert memory_claims(text) == ()


def test_each_time_counts() -> None:
    assert memory_claims("As we discussed earlier. As we discussed earlier. You asked me before.") == (
        "as_we_discussed",
        "as_we_discussed",
        "you_asked_before",
    )


def test_no_more_than_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert memory_claims("x" * MAX_CHARS + " as we discussed earlier") == ()


@pytest.mark.parametrize("name", MEMORY_CLAIMS)
def test_each_is_named_after_words_that_it_finds(name: str) -> None:
    assert memory_claims(MEMORY_CLAIMS[name]) == (name,)


# -- in a turn


async def summaries_and_prompts(
    said: list[str], answer: Callable[[Prompt], str]
) -> tuple[list[TurnSummary], list[Prompt]]:
    summaries: list[TurnSummary] = []
    prompts: list[Prompt] = []

    def script(prompt: Prompt) -> list[Line]:
        prompts.append(prompt)
        return [Say(answer(prompt))]

    persona = Persona(text="You keep an inn.", facts=lambda world, _: [Fact("Purse", str(world["purse"]))])
    cast = standard_cast(ScriptedModel(script), personas=persona, world={"purse": 20})
    async with open_stage(cast, observe=summaries.append) as stage:
        session = stage.start()
        for words in said:
            await session.finalize(session.begin_turn(words)).wait()
    return summaries, prompts


async def test_a_claim_is_reported_to_watchers_and_decides_nothing() -> None:
    summaries, _ = await summaries_and_prompts(["A room?"], lambda _: "As we discussed earlier, no.")
    assert [(each.outcome, each.memory_claims) for each in summaries] == [("ok", ("as_we_discussed",))]
    silent, _ = await summaries_and_prompts(["A room?"], lambda _: "No.")
    assert [(each.outcome, each.memory_claims) for each in silent] == [("ok", ())]


@pytest.mark.shows("feed-8", "feed-38")
async def test_no_claim_can_be_true_because_a_prompt_is_the_same_whatever_was_said_before() -> None:
    """What a model is told in turn N depends on the world and on what is said now. So there is nothing to remember."""
    chats = [
        ["A room?"],
        ["Remember the word marigold.", "We agreed on two coins, did we not?", "A room?"],
        ["You owe me a favour.", *["Nothing."] * 20, "A room?"],
    ]
    last: list[Prompt] = []
    for said in chats:
        _, prompts = await summaries_and_prompts(said, lambda prompt: f"I shall remember: {prompt.user}")
        last.append(prompts[-1])
    assert last[0] == last[1] == last[2]
    assert last[0].system == "You keep an inn.\nPurse: 20"
