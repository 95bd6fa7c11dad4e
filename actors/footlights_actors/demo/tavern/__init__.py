"""Demo tavern: an innkeeper, rooms, a kitchen, a purse, and an act that needs the player's approval."""
