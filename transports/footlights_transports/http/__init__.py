"""The HTTP server: connections, guards, authentication of routes, errors, and the OpenAPI document. It moves bytes."""
