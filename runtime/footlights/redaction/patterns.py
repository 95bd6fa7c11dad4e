"""Patterns of secrets and personal data: what is known by its shape, its check digits, or the words before it.

None backtracks without bound: what repeats is possessive or has a limit, so that time is linear in the text.
"""

# ruff: noqa: E501, RUF001 - lists of words, in many scripts

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from footlights.errors import RegistrationError
from footlights.redaction.numbers import (
    is_card,
    is_iban,
    is_international_phone,
    is_labelled_phone,
    is_national_id,
    is_phone,
    is_public_address,
)
from footlights.redaction.secret_fields import is_placeholder

if TYPE_CHECKING:
    from footlights.redaction.spans import Span

MAX_CHECKS = 2_000
"""Further matches of one pattern in one text are redacted without their check, which takes longer than to find them."""

Check: TypeAlias = Callable[[str], bool]


def _compiled(given: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        expression = re.compile(given)
    except re.error:
        raise RegistrationError("A pattern to redact is not a regular expression.") from None
    if expression.fullmatch(""):
        raise RegistrationError("A pattern to redact matches the empty text.")
    return expression


def _set_of(characters: str) -> frozenset[str]:
    return frozenset(characters)


_THING = re.compile(
    r"(?i)(?:order|bestell|auftrag|commande|pedido|ordine|заказ|订单|注文|part|teile?|sku|item|article|artikel|art|model|modell"
    r"|serial|serie|invoice|rechnung|facture|factura|fattura|ref|reference|referenz|ticket|case|lot|batch|charge|tracking|parcel"
    r"|sendung|build|version|release|isbn|issn|ean|gtin|upc|imei|iccid|vin|asin|doi|cartridge|filter|product|produkt|account id"
    r"|transaction|session|request|job|process|pid|row|line|page|room|flight|train|booking|buchung|score|size|lottery|total)\w{0,10}"
    r"(?:\W{1,3}(?:no|nr|num|number|id|code|n)\w{0,6})?\W{0,4}\Z"
)


@frozen
class SecretPattern:
    """A pattern to redact. Raises `RegistrationError` for an invalid expression, or one that matches the empty text.

    An expression of the host may be slow: one that backtracks without bound blocks the redaction.
    """

    name: str
    """A name for people."""
    expression: re.Pattern[str] = field(converter=_compiled)
    """The pattern. If its first group matched, only that group is redacted."""
    check: Check | None = None
    """A further test of the matched text."""
    is_number: bool = field(default=False, kw_only=True)
    """Whether a word before it that names a thing, as in "order no.", says that it is the number of no person."""
    needs: frozenset[str] = field(default=frozenset(), converter=_set_of, kw_only=True)
    """Characters of which a text must have one, to save the time of a search in vain."""

    def spans(self, text: str) -> list[Span]:
        """Where the text matches, as far as it is redacted."""
        spans: list[Span] = []
        for number, match in enumerate(self.expression.finditer(text)):
            begin, end = match.span(1 if self.expression.groups and match[1] else 0)
            if self.is_number and _THING.search(text, max(0, begin - 40), begin):
                continue
            if self.check is None or number >= MAX_CHECKS or self.check(text[begin:end]):
                spans.append((begin, end))
        return spans


def _has_digit(found: str) -> bool:
    return any(map(str.isdigit, found))


def _is_token(found: str) -> bool:
    """Whether it is a token and not a word: it has a digit, capitals as no name has, or more letters than words have."""
    camel_case = re.fullmatch(r"(?:[A-Z][a-z]+)+", found)
    if is_placeholder(found):
        return False
    return _has_digit(found) or len(found) >= 22 or (camel_case is None and any(map(str.isupper, found[1:])))


def _is_random(found: str) -> bool:
    """Whether it has a digit or is of both cases, and has no few characters again and again."""
    capitals = sum(map(str.isupper, found))
    return len(set(found[-16:])) > 5 and (_has_digit(found) or 2 < capitals < len(found) - 2)


def _is_opaque(found: str) -> bool:
    """Whether letters, capitals and digits change as in no word, name or path."""
    changes = len(re.findall(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|\d(?=[A-Za-z])", found))
    return _has_digit(found) and changes > len(found) * 0.3 and not ("/" in found and "." in found)


def _is_key(found: str) -> bool:
    return _is_opaque(found) and found.upper() != found != found.lower()


def _is_password(found: str) -> bool:
    """Whether it is a password and not a word: it has letters and digits, or letters and a sign within."""
    bare = found.strip("\"'`.,;:!?()*")
    if not any(map(str.isalpha, bare)) or is_placeholder(bare) or _ALGORITHM.match(bare) or _FILE.search(bare):
        return False
    return _has_digit(bare) or re.search(r"[!#%&*+@^~]", bare) is not None


_ALGORITHM = re.compile(
    r"(?i)(?:sha|md|base|bcrypt|argon|scrypt|pbkdf|utf|aes|rsa|hmac|v?\d+\.|python|http|oauth|ipv)[-_]?\d*"
)
_FILE = re.compile(r"\w\.[a-z]{1,4}\Z|[/\\(\[]|==")


def _is_strong(found: str) -> bool:
    """The same where the words before it say less."""
    bare = found.strip("\"'`.,;:!?()*")
    mixed = bare.lower() != bare != bare.upper() or not bare.replace("-", "a").isalnum()
    return len(bare) > 7 and mixed and _is_password(bare)


def _is_real(found: str) -> bool:
    return not is_placeholder(found)


def _digits(low: int, high: int) -> Check:
    return lambda found: low <= sum(map(str.isdigit, found)) <= high


def _is_labelled_id(found: str) -> bool:
    return len(set(found)) > 3 and (
        _digits(6, 20)(found) or (_digits(3, 9)(found) and found.isalnum() and 8 <= len(found) <= 10)
    )


def _vendor_tokens() -> str:
    alphabets = {
        "hex": "0-9a-f",
        "upper": "A-Z0-9",
        "alnum": "A-Za-z0-9",
        "word": r"\w-",
        "dotted": r"\w.-",
        "base64": r"\w.+/=-",
    }
    lines = files("footlights.redaction").joinpath("vendor_tokens.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    shapes = [f"(?:{'|'.join(map(re.escape, row[2].split()))})[{alphabets[row[0]]}]{{{row[1]},}}+" for row in rows]
    return rf"(?a:(?<![A-Za-z0-9])(?:{'|'.join(shapes)}))"


_WORD = r"(?<![A-Za-z0-9_-])"
_NUMBER = r"(?<![\w.+/-])(?<!\d:)(?!0800|0900|1?[ -]?8(?:00|88|77)[ -])"
_CARD = _NUMBER + r"(?=4|5[0-8]|2[2-7]|3[04-8]|6[0245])"
_QUOTE = r"[\"'`„“«]?"
_VALUE = r"([^\s\"'`“”»<>]{5,200})"
_PASSWORD = (
    r"(?:pass(?:word|wort|phrase|code|wd)|kennwort|wachtwoord|contraseña|mot de passe|senha|hasło|lösenord|parola|şifre"
    r"|пароль|heslo|jelszó|adgangskode|passord|salasana|pwd|p/?w|(?:wi-?fi|wlan|network)[ -](?:key|code|pass))"
)
_IS = r"(?:is|ist|lautet|est|es|è|é|jest|är|er|on|это|:|=|->|→|(?:chang|set|reset|updat|geändert|auf)\w{0,3}[^\n.:=]{0,24} (?:to|auf))"
_PHONE_LABEL = (
    r"(?:\b(?:tel|phone|mobil|handy|cellphone|cellul|fax|portable|téléphone|telefo|teléfono|móvil|movil|fisso|gsm|whatsapp|sms"
    r"|text me|hotline|puhelin|telef|тел|моб)\w{0,12}|电话|電話|手机|手機|携帯|전화|휴대폰|联系)"
)
_CALL = r"\b(?:call|ring|reach|dial|appel|llam|erreich|ruf|звон|chiam|bel|büro|office|home)\w{0,8}"
_ID_LABEL = (
    r"(?:(?i:\b(?:(?:ssn|rg|hkid|cpf|cnpj|curp|rfc|nif|nie|dni|oib|ppsn?|nino|n[hi]s? number|nhs|nric|bsn|cpr|ahv|avs|rut|nir|egn|cnp"
    r"|jmbg|amka|niss|insz|svnr|tckn|inn|snils|cnic|nik|aadhaar|pesel|hetu|pan|my ?number|tax id|id card)\b"
    r"|(?:social (?:security|insurance)|sozialversicherung|sécurité sociale|seguridad social|codice fiscale|national insurance"
    r"|steuer-?(?:id|nummer|identifik)|burgerservice|rijksregister|person(?:nummer|nr|al ?(?:ausweis|code|id|number))"
    r"|fødselsnummer|henkilötunnus|kennitala|isikukood|asmens kodas|kimlik|rodné číslo|passport|passaporto|reisepass|passeport"
    r"|pasaporte|passaporte|paspoort|pass?nummer|ausweis|führerschein|driv(?:er'?s|ing) licen[sc]e|tax(?:payer)? (?:id|file|number)"
    r"|(?:national )?identi(?:ty|fication|té|tà|dad)|national id|cédula|insurance number|medicare|паспорт|снилс|инн)\w{0,12}))"
    r"|\b(?:SIN|TFN|TIN|EIN|ITIN)\b|身份证|マイナンバー|個人番号|주민등록|护照|パスポート|旅券)"
)
_CODE_LABEL = (
    r"(?:\b(?:(?:t?otp|2fa|mfa|tan|pin)\b|einmal(?:code|passwort)"
    r"|(?:verif|valid|confirm|bestätig|auth|sicherheit|security|log-?in|sign-?in|connexion|one[- ]time|acces)\w{0,12}[- ]?"
    r"(?:code|código|codice|pin)|(?:code|código|codice|kod) (?:de|di|of|for|d')[ ']?"
    r"(?:verif|vérif|connex|confirm|valid|acc|sicur|segur)\w{0,12}"
    r"|(?:your|ihr|dein|votre|ton|tu|su|tuo|seu|jouw|uw|din)\s(?:(?!zip|post|promo|discount|area|country|source|gift)[^\W\d]+\s){0,3}(?:code|kode|código|codice|pin|kod|passcode)\b"
    r"|(?:код|kod)\w{0,4} (?:подтв|вход|безоп|weryf)\w{0,12})|验证码|驗證碼|認証コード|確認コード|인증번호|ваш код)"
)

DIGITS = "0123456789"

STANDARD_PATTERNS = (
    SecretPattern(
        "private key",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?=\s*\Z|[\"'`]?\s{0,2}(?:\r?\n|\\)|\s?[\w+/]{16})[\s\S]*?(?:-----END [A-Z ]{0,40}-----|\Z)",
    ),
    SecretPattern(
        "JSON web token", _WORD + r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++)?", needs="_-./:"
    ),
    SecretPattern("password in an address", r"(?<=://)[^\s/:@]{0,256}:([^\s/]{1,256})@(?!sha\d)", _is_real, needs="@"),
    SecretPattern("bearer token", r"(?i)\b(?:bearer|basic)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,4096})", _is_token),
    SecretPattern("token of a vendor", _vendor_tokens(), _is_random, needs=DIGITS + "_-"),
    SecretPattern(
        "API key", _WORD + r"(?:sk|rk)[-_][A-Za-z0-9_-]{16,}+", lambda found: sum(map(str.isdigit, found)) > 2
    ),
    SecretPattern(
        "token of a vendor",
        r"(?a:\b(?:[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+|\d{8,10}:AA[\w-]{30,}+|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}+"
        r"|[0-9a-f]{32}-us\d{1,2}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}|[\w~.-]{3}8Q~[\w~.-]{31,}+)\b)",
        needs="_-./:",
    ),
    SecretPattern(
        "webhook",
        r"(?:hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/\d{5,25}/"
        r"|webhook\.office\.com/webhookb2/|hooks\.zapier\.com/hooks/catch/)([\w/@-]{16,})",
        needs="_-./:",
    ),
    SecretPattern(
        "signature in an address",
        r"(?i)[?&#;](?:sig|(?:x-(?:amz|goog)-)?signature|(?:access|auth|id|refresh|magic|reset)?[_-]?token|key|auth|code|secret"
        r"|session|sid|jwt|ticket|invite|otp|hmac)=([^\s&\"'<>)\]]{16,})",
        _is_opaque,
        needs="=",
    ),
    SecretPattern(
        "cookie",
        r"(?i)(?:sess(?:ion)?[._-]?(?:id|key|token)?|\bsid|auth|remember[\w-]{0,12}|csrf[\w-]{0,12})=([\w%.~+/:-]{12,})",
        _is_opaque,
        needs="=",
    ),
    SecretPattern(
        "key",
        r"(?i)(?<!public)(?<!public[ _-])key(?:[ _-]?\d{1,2})?[\"']?\s{0,4}[:=]\s{0,4}[\"']?([\w+/.~-]{20,}={0,2})",
        _is_key,
        needs=":=",
    ),
    SecretPattern(
        "password",
        rf"(?i)\b{_PASSWORD}\b[^\n.:=]{{0,40}}?(?<!\w){_IS}\s{{1,4}}{_QUOTE}{_VALUE}",
        _is_password,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern(
        "password",
        rf"(?:パスワード|密码|密碼|비밀번호|暗証番号|口令)\s?(?:は|是|为|為|：|:|=)\s?{_QUOTE}([!-~]{{5,200}})",
        _is_password,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern("password", r"(?i)[\"']pass[\"']\s{0,4}[:=]>?\s{0,4}[\"']([^\"'\n]{4,200})[\"']", _is_real),
    SecretPattern("password", r"(?i)\bpassphrase\b[^\n.:=]{0,40}:[ \t]{0,4}([^\n]{8,200})", _is_real),
    SecretPattern(
        "password",
        rf"(?i)(?:{_PASSWORD}|pass)[ \t]{{1,4}}[\"']([^\"'\s]{{5,200}})[\"']",
        _is_password,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern(
        "password",
        rf"(?i)\b{_PASSWORD}(?:['’]s)?[ \t]{{1,8}}\[?(?:is[ \t]{{1,4}})?{_QUOTE}{_VALUE}",
        _is_strong,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern(
        "password of a command",
        r"(?i)(?<!\S)--(?:pass(?:word|wd|phrase)?|(?:auth|access|api|bot)?-?token|(?:client-?)?secret|(?:api-?|auth-?|access-?)key)"
        rf"[ =]{_QUOTE}(?!-){_VALUE}",
        _is_password,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern(
        "password of a command",
        r"\b(?:curl|wget|https?)\s[^\n|;]{0,200}?(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"'@]{4,200})",
        _is_real,
    ),
    SecretPattern(
        "password of a command",
        r"\b(?:mysql\w{0,6}|mariadb)\b[^\n|;]{0,120}?\s-p([^\s\"']{4,200})",
        _is_password,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern(
        "password of a command",
        r"(?:\bredis-cli\b[^\n|;]{0,120}?\s-a\s|\bsshpass\s-p\s?|\b(?:requirepass|masterauth)\s|\blogin\s[^\n|;]{0,60}?-p\s)"
        rf"{_QUOTE}{_VALUE}",
        _is_password,
        needs=DIGITS + "!#$%&*+@^~",
    ),
    SecretPattern("password of a command", r"\becho (?:-n )?[\"']?([^\"'\n|]{4,80}+)[\"']?\s{0,4}\|\s{0,4}sudo -S"),
    SecretPattern(
        "seed phrase",
        r"(?i)\b(?:seed|mnemonic|(?:recovery|backup|wallet|secret) (?:phrase|words?|seed)|(?:12|24)[- ]word|bip-?39)\b"
        r"[^:=\"'\n]{0,40}+[:=\"']\s{0,4}+[\"'`]?+"
        r"((?>(?:(?>\d{1,2}[.):]\s{0,2})?[a-z]{3,8}+[\s,]{1,3}+){11,23})(?:(?>\d{1,2}[.):]\s{0,2})?[a-z]{3,8}+)?)(?!\w)",
        needs=":=\"'",
    ),
    SecretPattern(
        "one-time code",
        rf"(?i){_CODE_LABEL}[^\d\n]{{0,40}}(?<![\w.,])(?:[A-Z]-)?(\d{{3}}[ -]\d{{3}}|\d{{6,8}})(?!\w|[.,-]\d)",
        needs=DIGITS,
    ),
    SecretPattern(
        "one-time code",
        rf"(?i){_CODE_LABEL}\W{{1,4}}(?:(?:is|ist|lautet|est|es|è)\W{{1,4}})?(\d{{4,5}})(?!\w|[.,-]\d)",
        needs=DIGITS,
    ),
    SecretPattern("one-time code", r"(?i)\b(?:use|enter|type) (\d{6}|\d{3}[ -]\d{3}) (?:to|as|when)\b", needs=DIGITS),
    SecretPattern(
        "one-time code",
        r"(?i)(?<![\w.,-])(\d{6}|\d{3}[ -]\d{3}) (?:is|ist|est|es|è) (?:your|ihr|dein|votre|tu|su|il tuo)\b[^\n]{0,40}?(?:code|cod)",
        needs=DIGITS,
    ),
    SecretPattern(
        "one-time code",
        r"(?i)(?:^|(?<!\w)(?:the|use|enter|with|der|le|el|il) )code:? (?:is |ist |est )?(\d{6}|\d{3}[ -]\d{3})(?!\w|[.,-]\d)",
        needs=DIGITS,
    ),
    SecretPattern(
        "password",
        r"(?i)\b(?:creds?|credentials|login|zugangsdaten|identifiants|accesso)\b[^\n]{0,24}?\b[\w.@-]{2,40} ?[:/] ?([^\s\"'<>]{6,200})",
        _is_strong,
        needs=DIGITS,
    ),
    SecretPattern(
        "password of a command",
        r"(?i)(?:(?:\w{0,20}(?:sqli?|PDO|connect\w{0,8}|login|auth\w{0,12}|credentials?))\([^\n()]{0,120}?[\"'][\w.@-]{1,64}[\"'],\s?[\"']"
        r"|\bnet user \S{1,40} |\bldap\w{3,8}\s[^\n|;]{0,80}?-w |\bsmbclient\s[^\n|;]{0,80}?-U ?[^\s%]{1,40}%)([^\s\"']{6,200})",
        _is_password,
        needs=DIGITS,
    ),
    SecretPattern("password", r"(?i)\bidentified (?:with \w+ )?by '([^'\n]{4,200})'", _is_real),
    SecretPattern("password", r"\bWIFI:[^\n]{0,80}?;P:([^;\n]{4,80});"),
    SecretPattern("password", r"(?i)\b(?:psk|passin pass:|pass:)=?[\"']?([^\s\"';]{6,80})", _is_password),
    SecretPattern("one-time code", r"(?<![\w-])[A-Z]-(\d{6})(?![\w-])", needs=DIGITS),
    SecretPattern(
        "e-mail address",
        r"(?<![\w.%+-])(?!(?:git|info|support|sales|contact|help|hello|no-?reply|root|admin|postmaster|webmaster|abuse|security|user|you|name|someone)@)\w[\w.%+-]*+@(?!v?\d+[x.])(?:[\w-]++\.)+(?!\d|(?:png|jpe?g|gif|svg|webp|js|css)\b)\w{2,}+",
        needs="@",
    ),
    SecretPattern(
        "card number",
        _NUMBER + r"(?:(?:4|5[0-8]|2[2-7]|35|6[0245])\d{14,17}|3[47]\d{13}|3[068]\d{12})(?![\w-])",
        is_card,
        is_number=True,
        needs=DIGITS,
    ),
    SecretPattern(
        "card number", _CARD + r"\d{4}(?:[ .-]\d{4}){3}(?:[ .-]\d{3})?(?![\w-])", is_card, is_number=True, needs=DIGITS
    ),
    SecretPattern("card number", _CARD + r"\d{4}(?:[ .-]\d{4}){3}(?![\w-])", is_card, is_number=True, needs=DIGITS),
    SecretPattern(
        "card number", _CARD + r"\d{4}[ .-]\d{6}[ .-]\d{4,5}(?![\w-])", is_card, is_number=True, needs=DIGITS
    ),
    SecretPattern(
        "bank account",
        r"(?<![A-Za-z0-9])[A-Z]{2}\d\d[ -]?(?:[A-Z0-9]{4}[ -]?){2,7}[A-Z0-9]{1,4}(?![A-Za-z0-9])",
        is_iban,
        needs=DIGITS,
    ),
    SecretPattern(
        "national id",
        r"(?<![\w.+/-])(?=[A-Z]{0,6}\d)[A-Z0-9](?:[ ./+-]?[A-Z0-9]){7,17}(?![\w-]|[.]\d)",
        is_national_id,
        is_number=True,
        needs=DIGITS,
    ),
    SecretPattern(
        "national id",
        r"(?<![\w.+/-])[12] \d\d \d\d \d[0-9AB] \d{3} \d{3} \d\d(?![\w-])",
        is_national_id,
        is_number=True,
        needs=DIGITS,
    ),
    SecretPattern(
        "national id",
        r"(?<![\w.-])(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: \d\d){3} [A-D](?!\w)",
        is_number=True,
        needs=DIGITS,
    ),
    SecretPattern(
        "national id",
        rf"{_ID_LABEL}[^\n]{{0,40}}?(?<![A-Za-z0-9])(?=[A-Z0-9](?:[ ./-]?[A-Z0-9]){{6}})([A-Z]{{0,6}}\d[A-Z0-9]*+(?:[ ./-][A-Z0-9]{{1,7}}(?![a-z])){{0,7}})",
        _is_labelled_id,
        needs=DIGITS,
    ),
    SecretPattern(
        "address of a person's connection",
        r"(?i)\b(?:my|h(?:er|is|ome)|their|customer|client|visitor|user|player|personal|personnelle|private|mon|meine?|mi)\b"
        r"[^\n]{0,80}?\b(?:ip|address|connection|anschluss|from)\b[^\n\d]{0,30}(\d{1,3}(?:\.\d{1,3}){3})(?![\d.]\d)",
        is_public_address,
        needs=DIGITS,
    ),
    SecretPattern(
        "phone number", r"(?<![\w.+-])\+\d(?:[ ().-]{0,2}\d){7,14}(?![\w-])", is_international_phone, needs=DIGITS
    ),
    SecretPattern(
        "phone number", _NUMBER + r"(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-. ]\d{4}(?!\w|[.-]\d)", is_number=True, needs=DIGITS
    ),
    SecretPattern(
        "phone number",
        _NUMBER + r"\(?0\d{1,4}\)?[ /-]{1,2}\d{3,8}(?:[ -]\d{2,8}){0,3}(?![\w-])",
        is_phone,
        is_number=True,
        needs=DIGITS,
    ),
    SecretPattern(
        "phone number",
        _NUMBER + r"(?<!\d )(\(?0\d{1,5}\)?(?:[ /-]\d{2,8}){1,4})(?![\w-]| ?\d| {1,2}[\da-f]{2} )",
        is_phone,
        is_number=True,
        needs=DIGITS,
    ),
    SecretPattern(
        "phone number",
        rf"(?i){_PHONE_LABEL}(?! app| user| device| version)[^\n\d+(]{{0,25}}(?!\d{{4}}-\d\d-\d\d\b)([+(]?\d(?:[ ()./-]{{0,2}}\d){{6,14}})(?![\w-])",
        is_labelled_phone,
        needs=DIGITS,
    ),
    SecretPattern(
        "phone number",
        rf"(?i){_CALL}[^\n\d+(]{{0,16}}(\(?\d{{2,5}}(?:[ ()/-]{{1,2}}\d{{2,6}}){{1,5}})(?![\w-])",
        lambda found: sum(map(str.isdigit, found)) > 8 and is_labelled_phone(found),
        is_number=True,
        needs=DIGITS,
    ),
)
"""The default patterns."""
