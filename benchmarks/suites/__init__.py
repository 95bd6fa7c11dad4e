"""Suites that measure Footlights itself, run from a checkout with `make bench-NAME`. They are not in the wheel."""
