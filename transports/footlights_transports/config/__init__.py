"""The settings file: its schema, how it is read, and the cast that it describes."""
