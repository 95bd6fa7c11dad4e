"""Authority suite: throughput, latency and growth of durable commits. Nothing here opens a socket."""
