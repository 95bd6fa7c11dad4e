"""The command line, one module for each command. A command imports what is slow when it runs. No library code."""
