"""Narrated runs (the Dexi protocol): a turn as plan, steps, tools, output and summary over SSE."""
