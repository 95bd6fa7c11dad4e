"""Attack suite: attacks on a server over loopback, each with a bound, for `footlights bench attack`.

The attacks are written from the documentation and the RFCs, never from the source of the server.
"""
