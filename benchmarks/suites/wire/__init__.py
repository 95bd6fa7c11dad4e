"""Wire suite: latency and throughput through real sockets."""
