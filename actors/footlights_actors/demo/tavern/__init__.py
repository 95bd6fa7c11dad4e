"""The tavern: an innkeeper, rooms, a kitchen, a purse, and what needs a player's approval."""
