"""Core suite: latency, throughput and memory of the interaction plane. Nothing here opens a socket."""
