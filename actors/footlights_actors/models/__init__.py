"""Model drivers: scripted, OpenAI and Anthropic interfaces, local weights.

Also the pool that loads models and shares their slots. What a turn needs of a model is in `footlights.models`.
"""
