"""A stage on a thread of its own, for hosts without trio. No sockets and no views."""
