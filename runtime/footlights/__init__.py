"""Footlights: streamed turns in front, audited commits behind."""
