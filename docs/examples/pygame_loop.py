"""A game loop of pygame at 60 frames a second, with the stage on a thread of its own: no frame waits for it.

    .venv/bin/python -m pip install pygame-ce
    .venv/bin/python docs/examples/pygame_loop.py

Space says good evening, also while the guard talks; every other key interrupts him.
"""

import pygame

from footlights import BusyRule, CommitFinal, StreamEvent, TokenDelta, TurnAccepted, TurnInterrupted, TurnParams
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports import StageThread, ThreadSession

# -- the game: its model, its window and its keys

CAST = standard_cast(ScriptedModel(lambda prompt: [Say("Halt! Who goes there? " * 4)], pace=0.03))


def draw(screen: pygame.Surface, font: pygame.font.Font, subtitle: str) -> None:
    screen.fill("black")
    screen.blit(font.render(subtitle, True, "gold"), (20, 40))
    pygame.display.flip()


# -- glue: at most 16 lines


def command(guard: ThreadSession, key: int) -> None:
    """A variant that ends in `_soon` returns at once; what came of it is in the events."""
    if key == pygame.K_SPACE:
        guard.begin_turn_soon("Good evening.", TurnParams(busy=BusyRule.INTERRUPT))
    else:
        guard.cancel_soon()


def subtitled(subtitle: str, event: StreamEvent) -> str:
    match event.payload:
        case TurnAccepted():
            return ""
        case TokenDelta(delta=delta):
            return subtitle + delta
        case TurnInterrupted(reason=reason):
            return f"{subtitle} ... ({reason})"
        case CommitFinal(commit_outcome=outcome):
            pygame.display.set_caption(f"committed: {outcome}")
    return subtitle


# -- the loop


def main() -> None:
    pygame.display.init()
    pygame.font.init()
    screen, font, clock = pygame.display.set_mode((900, 100)), pygame.font.Font(None, 28), pygame.time.Clock()
    subtitle, is_running = "Press space.", True
    with StageThread(CAST) as stage:
        guard = stage.start()
        while is_running:
            for event in pygame.event.get():
                is_running = is_running and event.type != pygame.QUIT
                if event.type == pygame.KEYDOWN:
                    command(guard, event.key)
            for told in guard.poll():  # never blocks
                subtitle = subtitled(subtitle, told)
            draw(screen, font, subtitle)
            clock.tick(60)
    pygame.quit()


if __name__ == "__main__":
    main()
