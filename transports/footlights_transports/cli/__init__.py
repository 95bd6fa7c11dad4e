"""The command line, one module a command. Anything slow is imported when its command runs."""
