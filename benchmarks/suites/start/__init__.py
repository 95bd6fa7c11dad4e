"""Start suite: time from the start of a process to the first use."""
