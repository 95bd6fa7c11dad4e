"""The narration of runs without trio or sockets: events and schemas, narrator, sentences, heartbeat times, and laws."""
