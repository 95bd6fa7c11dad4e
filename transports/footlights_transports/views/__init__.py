"""Views: projections of the same turns for different clients, one package each.

`base` is what they share: what a view mounts on the servers. `<view>/pure/` is what needs no trio. A view never changes
what happened, and knows no other.
"""
