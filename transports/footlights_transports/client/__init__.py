"""The Python client: sessions on a server that look like sessions in this process, and outlive connections."""
