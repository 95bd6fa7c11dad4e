"""Performance page: runs the suites, keeps their results, and writes docs/performance.md."""
