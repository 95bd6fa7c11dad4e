"""Suite of worlds in PostgreSQL: what they cost beside worlds in files."""
