"""Shared parts of the harness: the machine, child processes, progress, result files, tables."""
