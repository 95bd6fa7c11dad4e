"""Demo analyst: searches documents, simulates a cohort, and commits a report."""
