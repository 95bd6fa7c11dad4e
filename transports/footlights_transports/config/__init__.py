"""Configuration of a server: the schema of its settings, the sources that are read, the objects made. No serving."""
