"""A stage on a thread of its own, for hosts that are not trio programs."""
