"""Chat gateway (the K-gent protocol): dialogues over WebSocket, with observers.

The package holds the protocol, the gateway, its storage and its settings; `view.py` is what the servers mount of it. No
other view imports it, and `pure/` uses no trio. `cli/content.py` reads what it has stored.
"""
