"""The chat feed's projection of events. No trio."""
