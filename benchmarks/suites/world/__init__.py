"""World suite: commits, memory and opening of worlds of all sizes. Nothing here opens a socket."""
