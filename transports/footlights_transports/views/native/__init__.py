"""Native view: the commands of a session and its events as they are, over WebSocket, HTTP and Server-Sent Events."""
