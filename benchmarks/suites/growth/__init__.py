"""Growth suite: whether time and memory of a turn stay flat over many sessions and turns."""
