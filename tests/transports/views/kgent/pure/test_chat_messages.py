"""Chat messages, chat events and settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from footlights import FootlightsError, RegistrationError
from footlights_transports.views.kgent.pure.messages import (
    ChatEvent,
    ChatMessage,
    DialogueMode,
    InvalidMessage,
)
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig

if TYPE_CHECKING:
    from footlights import JsonValue


@pytest.mark.shows("gateway-35")
@pytest.mark.parametrize("content", ["", " ", "\n\t "])
def test_content_non_empty(content: str) -> None:
    with pytest.raises(ValueError, match="cannot be empty"):
        ChatMessage("user", content)


@pytest.mark.shows("gateway-34")
@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "narrator"},
        {"timestamp": float("nan")},
        {"correlation_id": ""},
        {"correlation_id": "x" * 129},
        {"correlation_id": "two\nlines"},
    ],
)
def test_an_invalid_message_is_refused_and_not_quoted(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage) as refused:
        ChatMessage(**{"role": "user", "content": "sssh", **wrong})
    assert refused.value.code == "invalid_message"
    assert isinstance(refused.value, FootlightsError)
    assert "sssh" not in str(refused.value)
    assert "narrator" not in str(refused.value)


@pytest.mark.shows("gateway-34", "gateway-38")
def test_a_message_has_defaults() -> None:
    first, second = ChatMessage("user", "Hello?"), ChatMessage("system", "Be kind.")
    assert first.mode is DialogueMode.REFLECT
    assert first.correlation_id != second.correlation_id
    assert first.timestamp > 0


@pytest.mark.shows("gateway-37", "gateway-41")
def test_messages_and_events_are_immutable() -> None:
    made = (ChatMessage("user", "Hello?"), ChatEvent("done", {}, 1, 1.0))
    for each in made:
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(each, attrs.fields(type(each))[0].name, "other")


@pytest.mark.shows("gateway-42")
def test_an_event_is_encoded_as_the_protocol_requires() -> None:
    payload: dict[str, JsonValue] = {
        "content": "Let me think about",
        "correlation_id": "client-uuid-123",
        "final": False,
    }
    event = ChatEvent("chunk", payload, 1, 1702598400.123)
    assert json.loads(event.encode()) == {
        "event_type": "chunk",
        "sequence": 1,
        "timestamp": 1702598400.123,
        "payload": payload,
    }
    assert b"\n" not in event.encode()


@pytest.mark.shows("gateway-47", "gateway-48", "gateway-51", "gateway-52")
def test_the_settings_are_those_of_the_contract() -> None:
    settings = ChatFluxConfig()
    assert settings.emit_thoughts is False
    assert settings.buffer_chunks == 5
    assert settings.stream_timeout == 30.0
    assert settings.entropy_budget == 0.10
    assert settings.heartbeat_interval == 5.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"buffer_chunks": 0},
        {"session_tokens": 0},
        {"message_burst": 0},
        {"max_waiting_dialogues": 0},
        {"stream_timeout": 0},
        {"stream_timeout": float("inf")},
        {"heartbeat_interval": -1.0},
        {"session_tokens_seconds": 0},
        {"messages_per_minute": 0},
        {"entropy_budget": 0.0009},
        {"entropy_budget": float("nan")},
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=next(iter(wrong))):
        ChatFluxConfig(**wrong)
