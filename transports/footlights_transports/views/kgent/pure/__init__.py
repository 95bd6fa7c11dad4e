"""Pure part of the chat gateway: messages, events, the wire format, the record of a conversation, settings.

Pure means without trio, sessions, sockets and files. One exception: messages, events and turns that are created without
a timestamp or an id take them from `time.time` and `uuid4`.
"""
