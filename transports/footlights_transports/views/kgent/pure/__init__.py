"""Pure part of the chat gateway: messages, events, the wire format, the record of a conversation, settings.

Nothing here knows trio, a session or a socket.
"""
