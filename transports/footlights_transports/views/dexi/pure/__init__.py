"""The narration of a run, its events, its schema and its laws. No trio."""
