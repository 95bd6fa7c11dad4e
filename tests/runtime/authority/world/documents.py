"""Random documents for tests of worlds: some small, some with many keys, long texts, and keys chosen to fork often."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

KEYS = st.one_of(
    st.text("ab", max_size=4),
    st.sampled_from(
        ["", "a" * 128, "a" * 127 + "b", "\U0001f34e", "\ue000", "\uffff", '"', "\\", "é", "~", "/", "-", "0", "12"]
    ),
    st.text(max_size=6),
)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.sampled_from([0.5, 1e-7, 1e-5, 1e21, 1.5e300, -0.0, 3.0]),
    st.text(max_size=8),
    st.sampled_from(["x" * 300, "é" * 700, '"' * 600, "\U0001f34e" * 300]),
)
SMALL = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=10,
)


def grown(value: Any, seed: int, width: int) -> Any:
    """A document with this value in many places: wide, long and deep by turns."""
    random = Random(seed)
    made = value
    for _ in range(random.randint(1, 3)):
        count = random.randint(1, width)
        kind = random.randrange(4)
        if kind == 0:
            made = {f"{random.randrange(10**6)}": _some(random, made, value) for _ in range(count)} | {"last": made}
        elif kind == 1:
            made = [_some(random, made, value) for _ in range(count)] + [made]
        elif kind == 2:  # each key forks a digit after the one before
            made = {"a" * length: _some(random, length, value) for length in range(min(count, 128))} | {"b": made}
        else:
            made = {"made": made, "\U0001f34e": [value] * random.randint(0, 4), "": "t" * random.randrange(2_000)}
    return made


def _some(random: Random, made: Any, value: Any) -> Any:
    return random.choice(
        [value, random.randrange(10**9), "y" * random.randrange(40), made if random.random() < 0.05 else None]
    )


LARGE = st.builds(grown, SMALL, st.integers(0, 2**32), st.sampled_from([3, 20, 100]))
DOCUMENTS = SMALL | LARGE
