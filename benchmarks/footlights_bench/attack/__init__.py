"""Attacks on a server over loopback, each with a bound, for `footlights bench attack`.

Written from the documentation and the RFCs, and not from the server's source: it knows only what a stranger knows.
"""
