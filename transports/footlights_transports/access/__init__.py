"""Access: who may use which session, quotas, rate limits and idle sessions. It knows no protocol."""
