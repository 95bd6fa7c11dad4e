"""Redaction of secrets in text and in fields, for everything that leaves a turn. Pure: no trio, no I/O."""
