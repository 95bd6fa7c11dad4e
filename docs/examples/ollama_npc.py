"""An NPC whose words come from Ollama, or from any other server with an OpenAI-compatible interface.

    ollama pull qwen3
    .venv/bin/python docs/examples/ollama_npc.py "Do you have a room?"

Options: --model qwen3, --base-url http://127.0.0.1:11434/v1. A server on a loopback address needs no key, and the
session needs no consent: the text does not leave the machine.
"""

import argparse

import trio

from footlights import CommitFinal, ModelLoading, Persona, TokenDelta, TurnInterrupted, open_stage
from footlights_actors import standard_cast
from footlights_actors.models.openai import OpenAIModel

INNKEEPER = Persona(text="You are Odo, an innkeeper of few words. Answer in one sentence.")


async def main(said: str, model: str, base_url: str) -> None:
    odo = OpenAIModel(model, base_url=base_url, key_env=None)
    async with open_stage(standard_cast(odo, personas=INNKEEPER)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn(said)
            async for event in stream.until_commit(turn_id):
                match event.payload:
                    case ModelLoading(progress=None):  # the first of them
                        print("(Odo wakes up ...)")
                    case TokenDelta(delta=delta):
                        print(delta, end="", flush=True)
                    case TurnInterrupted(reason=reason, error=error):
                        why = error.message if error is not None else f"{reason}."
                        print(f"({why} Does Ollama run, and does it have the model?)", end="")
                    case CommitFinal(commit_outcome=outcome):
                        print(f"\n[committed: {outcome}]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("said", nargs="?", default="Do you have a room?")
    parser.add_argument("--model", default="qwen3")
    parser.add_argument("--base-url", default="http://127.0.0.1:11434/v1")
    options = parser.parse_args()
    trio.run(main, options.said, options.model, options.base_url)
