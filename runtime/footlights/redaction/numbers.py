"""Numbers of people in a text: payment cards, bank accounts, national ids and phone numbers.

A number is one if its check digits say so, or if a label before it does. Check digits of national ids come from
`python-stdnum`, the plans of phone numbers from `phonenumbers`: the extra `redaction`. Without them only labelled ones
and those of STANDARD_PATTERNS are found; `missing_extras` says so.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PLANS = ("US GB DE FR IT ES PT NL BE CH AT SE NO DK FI PL CZ IE JP CN IN BR MX RU TR UA AU KR IL GR").split()  # noqa: SIM905
"""Regions whose numbers are known without a country code, if a label says that a number is one of a phone."""
_TRUNK_PLANS = "GB DE FR IT NL SE JP CH AT BE PL".split()  # noqa: SIM905
"""The same for numbers without a label, which begin with 0."""

_BY_SHAPE = {
    r"\d{3}\.\d{3}\.\d{3}-\d\d": "br.cpf",
    r"\d\d\.\d{3}\.\d{3}/\d{4}-\d\d": "br.cnpj",
    r"756\.?\d{4}\.?\d{4}\.?\d\d": "ch.ssn",
    r"[12] ?\d\d ?[01]\d ?\d[0-9AB] ?\d{3} ?\d{3} ?\d\d": "fr.nir",
    r"[1-9]\d{5}(?:19|20)\d{9}[\dX]": "cn.ric",
    r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z0-9]\d": "mx.curp",
    r"[A-Z]{6}[0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]": "it.codicefiscale",
    r"\d{8}-?[A-Z]": "es.dni",
    r"[XYZ]-?\d{7}-?[A-Z]": "es.nie",
    r"\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]": "fi.hetu",
    r"(?:19|20)?\d{6}[-+]\d{4}": "se.personnummer",
    r"\d{6} \d{5}": "no.fodselsnummer",
    r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d": "be.nn",
    r"\d{6}-[1-4]\d{6}": "kr.rrn",
    r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]": "cl.rut",
    r"\d{6}/\d{4}": "cz.rc",
}
"""Shapes of national ids that are known without a label, and the module that checks their digits."""
_SHAPES = [(re.compile(shape), module) for shape, module in _BY_SHAPE.items()]


def missing_extras() -> tuple[str, ...]:
    """What is not found because the extra `redaction` is not installed, as phrases for people."""
    needed = {"phonenumbers": "phone numbers in national notation", "stdnum": "national ids without a label"}
    return tuple(lack for module, lack in needed.items() if find_spec(module) is None)


def is_card(found: str) -> bool:
    """Whether the digits pass Luhn's check."""
    digits = [int(character) for character in found if character.isdigit()]
    doubled = (each if place % 2 == 0 else each * 2 - 9 * (each > 4) for place, each in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def is_iban(found: str) -> bool:
    """Whether the check digits of a bank account number (ISO 13616) are right."""
    bare = re.sub(r"[\s-]", "", found).upper()
    if not 15 <= len(bare) <= 34:
        return False
    return int("".join(str(int(each, 36)) for each in bare[4:] + bare[:4])) % 97 == 1


def is_public_address(found: str) -> bool:
    """Whether it is an IP address of the public internet."""
    try:
        return ip_address(found).is_global
    except ValueError:
        return False


@lru_cache(4096)
def is_national_id(found: str) -> bool:
    """Whether it has the shape and the check digits of a national id."""
    return any(shape.fullmatch(found) and _module(name).is_valid(found) for shape, name in _SHAPES if _module(name))


@lru_cache(4096)
def is_labelled_phone(found: str) -> bool:
    """Whether it is a phone number of any plan; without the extra, whether it has as many digits as one."""
    return _is_phone(found, _PLANS) and 7 <= sum(map(str.isdigit, found)) <= 15


@lru_cache(4096)
def is_international_phone(found: str) -> bool:
    """Whether its country has numbers of this length; without the extra, always."""
    phones = _phones()
    if phones is None:
        return True
    try:
        return bool(phones.is_possible_number(phones.parse(found, None)))
    except phones.NumberParseException:
        return False


@lru_cache(4096)
def is_phone(found: str) -> bool:
    """Whether it is a number with the trunk prefix 0, as most are written at home. Never without the extra."""
    return sum(map(str.isdigit, found)) > 8 and _phones() is not None and _is_phone(found, _TRUNK_PLANS)


def _is_phone(found: str, regions: list[Any]) -> bool:
    phones = _phones()
    return phones is None or any(_is_valid(phones, found, region) for region in regions)


def _is_valid(phones: Any, found: str, region: str | None) -> bool:
    try:
        return bool(phones.is_valid_number(phones.parse(found, region)))
    except phones.NumberParseException:
        return False


_phones: Callable[[], Any] = cache(lambda: import_module("phonenumbers") if find_spec("phonenumbers") else None)


@cache
def _module(name: str) -> Any:
    return import_module(f"stdnum.{name}") if find_spec("stdnum") else None
