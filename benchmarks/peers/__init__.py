"""The same NPC turn in other people's frameworks, measured beside Footlights. Never part of the tests' time."""
