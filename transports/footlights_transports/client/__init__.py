"""The Python client: sessions on a server, used like local ones, that survive lost connections. No server code."""
