"""A game loop that is no trio program: the stage runs on a thread of its own, and each frame polls it.

    .venv/bin/python docs/examples/stage_thread_loop.py

Replace `poll(timeout=...)` by your engine's frame limiter and `poll()`, which never blocks.
"""

from footlights import CommitFinal, TokenDelta, TurnInterrupted
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports import StageThread

FRAME = 1 / 60


def main() -> None:
    guard = ScriptedModel(lambda prompt: [Say("Halt! Who goes there? Well?"), Stall()], pace=0.01)
    with StageThread(standard_cast(guard)) as stage:
        session = stage.start()
        asked = session.begin_turn_soon("Good evening.")  # a ticket: the frame goes on at once
        subtitle, running, interrupted = "", True, False
        while running:
            for event in session.poll(timeout=FRAME):
                match event.payload:
                    case TokenDelta(delta=delta):
                        subtitle += delta
                    case TurnInterrupted(reason=reason):
                        print(f"Interrupted: {reason}")
                    case CommitFinal(commit_outcome=outcome):
                        print(f"Turn {asked.result()} is committed: {outcome}")
                        running = False
            if "?" in subtitle and not interrupted:
                interrupted = True
                session.cancel_soon()  # the player answers before the guard has finished
        print(f"The first sentence was shown: {subtitle.partition('?')[0]}?")


if __name__ == "__main__":
    main()
