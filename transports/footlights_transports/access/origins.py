"""Web origins: which pages are of this machine.

A browser writes an origin in one form: scheme, host and, unless it is the default, port, in lower case. Everything
else is refused here rather than interpreted.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address

_OF_THIS_MACHINE = re.compile(
    r"https?://(?:localhost|\[::1\]|(?P<address>127(?:\.[0-9]{1,3}){3}))(?::(?P<port>[0-9]{1,5}))?"
)
_HIGHEST_PORT = 65_535


def is_of_this_machine(origin: str) -> bool:
    """Whether a page of this origin was served by a loopback address."""
    found = _OF_THIS_MACHINE.fullmatch(origin)
    if found is None or int(found["port"] or 0) > _HIGHEST_PORT:
        return False
    try:
        return found["address"] is None or IPv4Address(found["address"]).is_loopback
    except ValueError:
        return False
