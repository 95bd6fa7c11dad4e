"""Checks of texts that a rule matched: whether they are secret or personal, and not words, names or examples."""

from __future__ import annotations

import re

from footlights.redaction.numbers import (
    is_card,
    is_iban,
    is_international_phone,
    is_labelled_phone,
    is_national_id,
    is_phone,
    is_public_address,
)
from footlights.redaction.placeholders import is_placeholder

_ALGORITHM = re.compile(
    r"(?i)(?:sha|md|base|bcrypt|argon|scrypt|pbkdf|utf|aes|rsa|hmac|v?\d+\.|python|http|oauth|ipv)[-_]?\d*"
)
_FILE = re.compile(r"\w\.[a-z]{1,4}\Z|[/\\(\[]|==")


def _has_digit(found: str) -> bool:
    return any(map(str.isdigit, found))


def is_token(found: str) -> bool:
    """Whether it is a token and not a word: it has a digit, capitals as no name has, or more letters than one."""
    camel_case = re.fullmatch(r"(?:[A-Z][a-z]+)+", found)
    if is_placeholder(found):
        return False
    return _has_digit(found) or len(found) >= 22 or (camel_case is None and any(map(str.isupper, found[1:])))


def is_random(found: str) -> bool:
    """Whether it has a digit or is of both cases, and has no few characters again and again."""
    capitals = sum(map(str.isupper, found))
    return len(set(found[-16:])) > 5 and (_has_digit(found) or 2 < capitals < len(found) - 2)


def is_opaque(found: str) -> bool:
    """Whether letters, capitals and digits change as in no word, name or path."""
    changes = len(re.findall(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|\d(?=[A-Za-z])", found))
    return _has_digit(found) and changes > len(found) * 0.3 and not ("/" in found and "." in found)


def is_key(found: str) -> bool:
    return is_opaque(found) and found.upper() != found != found.lower()


def is_password(found: str) -> bool:
    """Whether it is a password and not a word: it has letters and digits, or letters and a sign within."""
    bare = found.strip("\"'`.,;:!?()*")
    if not any(map(str.isalpha, bare)) or is_placeholder(bare) or _ALGORITHM.match(bare) or _FILE.search(bare):
        return False
    return _has_digit(bare) or re.search(r"[!#%&*+@^~]", bare) is not None


def is_strong(found: str) -> bool:
    """The same where the words before it say less."""
    bare = found.strip("\"'`.,;:!?()*")
    mixed = bare.lower() != bare != bare.upper() or not bare.replace("-", "a").isalnum()
    return len(bare) > 7 and mixed and is_password(bare)


def is_real(found: str) -> bool:
    return not is_placeholder(found)


def is_labelled_id(found: str) -> bool:
    digits = sum(map(str.isdigit, found))
    return len(set(found)) > 3 and (
        6 <= digits <= 20 or (3 <= digits <= 9 and found.isalnum() and 8 <= len(found) <= 10)
    )


def has_three_digits(found: str) -> bool:
    return sum(map(str.isdigit, found)) > 2


def is_called_phone(found: str) -> bool:
    """Whether it is a phone number of nine digits or more, where the words before it say less than a label."""
    return sum(map(str.isdigit, found)) > 8 and is_labelled_phone(found)


CHECKS = {
    check.__name__: check
    for check in (
        *(is_card, is_iban, is_international_phone, is_labelled_phone, is_national_id, is_phone, is_public_address),
        *(is_token, is_random, is_opaque, is_key, is_password, is_strong, is_real, is_labelled_id),
        *(has_three_digits, is_called_phone),
    )
}
"""By the name that the rules call them."""
