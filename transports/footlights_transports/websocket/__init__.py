"""WebSocket server: handshake, frames, connections, and the broadcaster that sends to them. Only `handshake` and
`server` know the views.
"""
