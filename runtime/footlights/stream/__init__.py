"""Streams: one bounded outbox for each subscriber, replay and catch-up. What an event means is decided elsewhere."""
