"""The chat gateway (the K-gent protocol): dialogues over WebSocket, with observers."""
