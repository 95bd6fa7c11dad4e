"""Core: latency, throughput and memory of the interaction plane."""
