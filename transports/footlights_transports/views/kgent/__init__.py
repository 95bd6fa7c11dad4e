"""Chat gateway (the K-gent protocol): dialogues over WebSocket, with observers.

Everything of this view is here; no other view imports it, and only `pure/` may be used without trio.
"""
