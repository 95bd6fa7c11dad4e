"""Floods: load on a server, and its effect on a bystander and on the memory of the server."""
