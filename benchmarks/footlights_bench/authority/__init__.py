"""Authority: commits a second and their latency, beside raw SQLite."""
