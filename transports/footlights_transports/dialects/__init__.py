"""What goes over the wire, in each of the languages that Footlights speaks. Pure: no trio, no sockets, no clock."""
