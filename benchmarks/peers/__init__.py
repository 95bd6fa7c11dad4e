"""Peers: the same NPC turn in other frameworks, measured beside Footlights by `make bench-peers`."""
