"""Chat gateway (the K-gent protocol): dialogues over WebSocket, with observers.

The package holds the protocol, the gateway and its storage; no other view imports it, and `pure/` uses no trio. The
WebSocket server accepts its connections, `server/serve.py` starts it, `config` reads its settings, and `cli/content.py`
reads what it has stored.
"""
