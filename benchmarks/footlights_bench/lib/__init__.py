"""Shared parts of the suites: figures, reports, progress, processes, scripts. It imports no suite."""
