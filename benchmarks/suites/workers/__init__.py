"""Workers suite: many worlds in a process, and worlds spread over processes."""
