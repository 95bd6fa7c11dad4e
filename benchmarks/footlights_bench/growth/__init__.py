"""Growth: whether time and memory a turn stay flat over long runs."""
