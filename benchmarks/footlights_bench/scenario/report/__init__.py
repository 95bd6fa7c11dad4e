"""Reports of a result: text for a terminal, and a page with plots."""
