"""Models as a turn needs them: the protocol, the pool, prompts and budgets.

Drivers live in `footlights_actors.models`.
"""
