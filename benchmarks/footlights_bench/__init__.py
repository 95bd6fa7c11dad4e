"""The harness that measures Footlights."""
