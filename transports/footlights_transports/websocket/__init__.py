"""WebSocket server: handshake, frames, connections, and the broadcaster that sends to them. Views mount their paths at
its `server`.
"""
