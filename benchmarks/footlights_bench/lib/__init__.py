"""Shared parts of the suites: figures, reports, progress, processes, scripts. Nothing here knows a suite."""
