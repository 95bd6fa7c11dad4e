"""Base of the views: what a view mounts on the servers, and the log of single runs. It knows no view."""
