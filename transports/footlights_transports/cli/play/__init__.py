"""`footlights play`: a conversation with an NPC, in a terminal, in a pipe, or as JSON lines."""
