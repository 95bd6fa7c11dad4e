"""Parts that the suites share: figures, reports, progress, the machine."""
