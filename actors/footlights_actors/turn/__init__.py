"""Assembly of a turn from its actors: the performance, the model choice, tool calls, the standard cast.

The actors themselves are the modules of `footlights_actors`.
"""
