"""Probe of a model server, for `footlights models probe`."""

from __future__ import annotations

from urllib.parse import urlsplit

import trio

from footlights.errors import ModelError, RegistrationError
from footlights_actors.models.http_stream import server
from footlights_actors.models.openai import OpenAIModel
from footlights_actors.models.own_servers import Silent, Unanswered, get_json, openai_models
from footlights_actors.models.probe import ProbeReport, probe

LIST_TIMEOUT = 10.0


def probe_here(url: str, name: str | None, key_env: str | None) -> tuple[str, ProbeReport]:
    """The name of the model, and the report. Raises `FootlightsError` if the model cannot be reached."""
    try:
        has_path = bool(urlsplit(url).path.strip("/"))
    except ValueError:
        raise RegistrationError("That is not the address of a server.") from None
    base_url = url.rstrip("/") if has_path else f"{url.rstrip('/')}/v1"
    return trio.run(_probe, base_url, name, key_env)


async def _probe(base_url: str, name: str | None, key_env: str | None) -> tuple[str, ProbeReport]:
    at = server(base_url, key_env)
    key = at.key()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    model = OpenAIModel(name or await _first_model(at.base_url, at.where, headers), base_url=base_url, key_env=key_env)

    async def is_at_work() -> bool | None:
        """As llama.cpp shows its slots; other servers do not."""
        try:
            slots = await get_json(f"{at.base_url.removesuffix('/v1')}/slots", headers)
            return any(slot["is_processing"] for slot in slots)
        except (Unanswered, KeyError, TypeError):
            return None

    try:
        return model.model_id, await probe(model, is_at_work)
    except TimeoutError as error:
        raise ModelError(str(error)) from None


async def _first_model(base_url: str, where: str, headers: dict[str, str]) -> str:
    reason = f"took longer than {LIST_TIMEOUT:g} s to list its models"
    with trio.move_on_after(LIST_TIMEOUT):
        try:
            for model in openai_models(await get_json(f"{base_url}/models", headers)):
                if model.chats:
                    return model.name
            reason = "offers no model for conversations"
        except Silent as error:
            raise ModelError(f"{where} {error}.") from None
        except Unanswered as error:
            reason = str(error)
        except (KeyError, TypeError, AttributeError, OverflowError, ValueError):
            reason = "does not list its models as OpenAI does"
    raise ModelError(f"{where} {reason}. Name one with --model.")
