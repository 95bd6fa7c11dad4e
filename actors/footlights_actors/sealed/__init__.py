"""What is kept of people's words: encrypted, erasable, in folders that one process at a time changes."""

from __future__ import annotations

CONTENT_KEYS_VARIABLE = "FOOTLIGHTS_CONTENT_KEYS"
"""The environment variable with the keys of stored content, separated by commas."""
