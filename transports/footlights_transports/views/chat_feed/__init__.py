"""The chat feed: a session as lines for people, read by polling. A projection; it changes nothing."""
