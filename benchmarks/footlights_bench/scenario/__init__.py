"""Scenarios: a described load against a server, with latency targets."""
