"""HTTP server: connections, the guard, operations with their authentication, the SSE response, errors and the OpenAPI
document. Only `app` and `server` know the views.
"""
