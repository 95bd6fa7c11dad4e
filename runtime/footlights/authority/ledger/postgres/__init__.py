"""The ledger in PostgreSQL: address, connections, schema, statements, store, leases, reader. It judges nothing."""
