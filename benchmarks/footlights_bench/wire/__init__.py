"""Wire: latency and throughput through real sockets."""
