"""Pure part of the AG-UI view: positions, requests, the projection of a turn, and the laws of its streams. No trio."""
