"""The native view: the events themselves, over WebSocket and Server-Sent Events, and the commands of a session."""
