"""Shared parts of the suites: figures, reports, scripts, servers. It imports no suite."""
