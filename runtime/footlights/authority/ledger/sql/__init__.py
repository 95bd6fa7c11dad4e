"""What the ledgers in SQL databases share: queries, the head, checkpoints, tool groups, and the way to their thread."""
