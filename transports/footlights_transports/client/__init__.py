"""Python client: sessions on a server, used like local ones, that survive lost connections.

It shares the native protocol's definitions with the servers (`views/native/protocol.py`), and no other code of theirs.
"""
