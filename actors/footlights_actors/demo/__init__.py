"""Demo games: a tavern and an analyst, with their documents. Library code never imports them."""
