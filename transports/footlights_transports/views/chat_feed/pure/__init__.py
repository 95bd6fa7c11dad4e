"""The messages of the chat feed: a pure projection of events. No trio."""
