"""One player's session: the object a host holds, and its core with turns and subscribers. No actor runs here."""
