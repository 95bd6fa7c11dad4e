"""Scenario suite: a described load against a stage or a server, with latency targets."""
