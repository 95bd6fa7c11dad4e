"""Views: projections of the same turns for different clients, one package each. A view never changes what happened."""
