"""The chat feed: a session as messages for people, read by polling. It never writes, and never changes a turn."""
