"""The turns that stay of a completed dialogue. Pure: no trio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.views.kgent.pure.record import Turn, TurnType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_transports.views.kgent.pure.messages import ChatChunk
    from footlights_transports.views.kgent.pure.reading import Committed, SpokeAll

SOURCE = "kgent-soul"
TEMPLATE_SOURCE = "kgent-template"
CONFIDENCE = 0.95
TOKENS_PER_ENTROPY = 1_000


def speech_of(whole: SpokeAll, committed: Committed, before: Turn | None, now: float) -> Turn:
    """The one SPEECH of a dialogue that was completed. `before` is that of the dialogue before."""
    return Turn(
        id=whole.turn_id,
        content=whole.text,
        timestamp=now,
        source=SOURCE if whole.template is None else TEMPLATE_SOURCE,
        turn_type=TurnType.SPEECH,
        state_hash_pre="" if before is None else before.state_hash_post,
        state_hash_post=committed.commit_digest,
        confidence=CONFIDENCE,
        entropy_cost=whole.tokens / TOKENS_PER_ENTROPY,
    )


def thoughts_of(speech: Turn, chunks: Sequence[ChatChunk]) -> list[Turn]:
    """A THOUGHT for each chunk with words that the speech came in. They changed nothing, and took nothing."""
    return [
        Turn(
            id=f"{speech.id}/{number}",
            content=chunk.content,
            timestamp=speech.timestamp,
            source=speech.source,
            turn_type=TurnType.THOUGHT,
            state_hash_pre=speech.state_hash_pre,
            state_hash_post=speech.state_hash_pre,
            confidence=CONFIDENCE,
            entropy_cost=0.0,
        )
        for number, chunk in enumerate(chunks, 1)
        if chunk.content
    ]
