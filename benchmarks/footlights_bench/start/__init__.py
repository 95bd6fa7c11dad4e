"""Start: time and memory until the first turn."""
