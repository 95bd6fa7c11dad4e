"""Tools as a host declares them: the class, the decorator, schemas and argument validation.

The actors in `footlights_actors` run them.
"""
