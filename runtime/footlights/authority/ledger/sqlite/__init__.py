"""The ledger in a SQLite file: schema, rows, lock, reader, writer. It stores commits and judges nothing."""
