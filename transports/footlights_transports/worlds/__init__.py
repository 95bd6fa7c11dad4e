"""Worlds of one server: their names in addresses, and how servers find the world that a client names."""
