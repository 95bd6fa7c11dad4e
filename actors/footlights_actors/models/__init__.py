"""Model drivers (scripted, OpenAI, Anthropic, local weights), and the pool that loads models and shares their slots.

The protocols that they implement are in `footlights.models`.
"""
