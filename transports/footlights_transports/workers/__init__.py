"""Workers: the worlds of one server in several processes, behind a router that passes connections to them."""
