"""An engine that misbehaves on cue, in the place of the real one: put this folder first on a worker's path.

Loading does what the weights' file says after its first four bytes. A request does what its last message says.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class CommonParams:
    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=0)
        self.cpuparams_batch = SimpleNamespace(n_threads=0)


def text_chunk(text: str) -> bytes:
    return json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": None}]}).encode()


def progress_chunk() -> bytes:
    return json.dumps({"choices": [{"delta": {"content": None}}], "prompt_progress": {"processed": 1}}).encode()


def last_chunks(tokens: int, reason: str = "stop") -> list[bytes]:
    return [
        json.dumps({"choices": [{"delta": {}, "finish_reason": reason}]}).encode(),
        json.dumps({"choices": [], "usage": {"completion_tokens": tokens, "prompt_tokens": 7}}).encode(),
    ]


PROBABLE = {" talk": -1.0, " rum": -2.0, " room": -3.0, " rooms": -3.5, "talk": -4.0, " r": -5.0}


class Server:
    def __init__(self, params: Any) -> None:
        match Path(params.model.path).read_bytes()[4:]:
            case b"refuse":
                raise RuntimeError("these are no weights")
            case b"die":
                os._exit(7)
            case b"hang":
                threading.Event().wait()
            case _:
                pass

    def handle_chat_completions(self, request: bytes, callback: Callable[[bytes], Any]) -> None:
        match json.loads(request)["messages"][-1]["content"]:
            case "talk for ever":
                while not callback(text_chunk("word ")):
                    pass
            case "read for ever":
                while not callback(progress_chunk()):
                    pass
            case str(said) if "story" in said or "travellers" in said:
                self._pace(callback, text_chunk("word "))
            case str(said) if said.endswith("word word "):
                self._pace(callback, progress_chunk())
            case "do not stop":
                callback(text_chunk("word "))
                threading.Event().wait()
            case "die":
                callback(text_chunk("I "))
                os._exit(9)
            case "refuse":
                callback(b'{"error": {"code": 400, "type": "exceed_context_size_error", "message": "secret"}}')
            case "fail":
                callback(b'{"error": {"code": 500, "type": "server_error", "message": "secret"}}')
            case "throw":
                raise ValueError("secret")
            case "two sentences":
                for piece in ("Good ", "evening.", " Come "):
                    callback(text_chunk(piece))
                while not callback(text_chunk("in. ")):
                    pass
            case "break off":
                callback(text_chunk("I "))
            case "read a little":
                for chunk in (progress_chunk(), progress_chunk(), text_chunk("Yes."), *last_chunks(2)):
                    callback(chunk)
            case "think":
                for chunk in (text_chunk("a bed</think>"), text_chunk("Yes."), *last_chunks(2)):
                    callback(chunk)
            case "call":
                for part in ('{"name": "pour", "argu', 'ments": {"drink": "ale"}}'):
                    callback(text_chunk(part))
                for chunk in last_chunks(2):
                    callback(chunk)
            case _:
                for chunk in (text_chunk("Good "), text_chunk("evening."), *last_chunks(2)):
                    callback(chunk)

    def handle_completions(self, request: bytes, callback: Callable[[bytes], Any]) -> None:
        asked = json.loads(request)
        if asked["prompt"] == "read for ever":
            while not callback(progress_chunk()):
                pass
        elif asked["prompt"] != "give nothing":
            likeliest = [{"token": token, "logprob": log_prob} for token, log_prob in PROBABLE.items()]
            told = {"content": [{"top_logprobs": likeliest[: asked["n_probs"]]}]}
            callback(progress_chunk())
            callback(json.dumps({"choices": [{"text": " talk", "logprobs": told}]}).encode())
            callback(json.dumps({"choices": [{"text": "", "logprobs": None, "finish_reason": "length"}]}).encode())

    def _pace(self, callback: Callable[[bytes], Any], chunk: bytes) -> None:
        """At the pace of a real engine: a turn ends when it has said as much as it may."""
        pause = threading.Event()
        while not callback(chunk):
            pause.wait(0.001)
