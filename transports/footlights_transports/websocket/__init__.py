"""The WebSocket server: handshake, frames, connections and the one path that sends to them. It moves bytes."""
