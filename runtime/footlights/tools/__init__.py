"""Tools as a turn needs them: the protocol, the decorator, schemas and checked arguments.

Running them is an actor's job.
"""
