"""Access: tokens, origins, ownership of sessions, quotas, rate limits and idle sessions.

All servers and views share it. It parses no request and writes no reply; it checks values that the servers extract,
such as the `Authorization` and `Origin` headers.
"""
