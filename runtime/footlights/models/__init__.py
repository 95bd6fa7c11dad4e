"""Models as a turn uses them: the protocols of model and pool, prompts and budgets.

Drivers live in `footlights_actors.models`.
"""
