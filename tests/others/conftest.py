"""Tests over other people's libraries are collected only where these are: `make test-others` has them."""

from importlib.util import find_spec

_NEEDS = {
    "test_aioresult.py": "aioresult",
    "test_tricycle.py": "tricycle",
    "test_trio_parallel.py": "trio_parallel",
    "test_trio_util.py": "trio_util",
}
collect_ignore = [file for file, library in _NEEDS.items() if find_spec(library) is None]
