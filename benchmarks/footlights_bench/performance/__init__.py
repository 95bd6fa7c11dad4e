"""The performance page: runs the suites and writes docs/performance.md."""
