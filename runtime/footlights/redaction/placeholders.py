"""Placeholders: what stands where a secret would, and is none: names, code, templates, and words about a secret."""

from __future__ import annotations

import re

from footlights.modes.words import folded, word_set

_PLACEHOLDER = re.compile(
    r"(?i)[\s\"'`]*(?:null|none|nil|true|false|undefined|required|optional|hidden|empty|unset|n/a|secret|pass(?:word|wd)?"
    r"|postgres|guest|change[-_ ]?(?:me|it)\S*|(?:your|my|the|insert|enter|replace)[-_ ].*|(?:not|no)-\w+"
    r"|example\S*|placeholder|(?:process|import\.meta|os)\.env\S*"
    r"|[*x.•█?_…-]{3,}|[-?*.={]|[\[<({]*(?:redacted|hidden|masked|secret|password|token)[\]>)}]*|<[^<>]*[ _-][^<>]*>"
    r"|<(?:your|my|the|insert|enter)\b.*|<%.*|!\w+ .*|\d+(?:-\d+)?\s?(?:char|zeich|caract|sign).*"
    r"|\*\*.*|\w{2,12}[-_]?\.\.\..*|\$[{(].*|\{\{.*|%\(.*|\$\w+|[\w.]{2,60}[(\[].*"
    r"|\{\s*[\"']?\$?(?:type|ref|description)\b[\s\S]*|(?:int|str|string|bool|boolean|bytes|float|number|object|any|list|dict|text|varchar|uuid)\b.*|)[\s\"'`\])},;:.]*"
    r"|(?-i:[\"'`]?(?:[Bb]earer )?(?:[A-Z]{2,}(?:_[A-Z]+)*|[a-z]+(?:_[a-z]+)+|(?:[A-Z][a-z]+){2,}"
    r"|(?:self|this|cls|req|request|res|response|session|config|settings|args|options|params|props|user|app|state|event|ctx)"
    r"(?:\.[A-Za-z_]+)+)[\"'`]?(?:[\s\])},;:.].*)?)"
)
"""What stands for a secret, as in documentation and in programs."""
_PROSE = re.compile(
    r"(?i)\b(?:must|should|shall|may|is|are|was|were|be|at|the|your|you|to|of|in|on|for|with|this|that|it|we|from|by|as|if"
    r"|when|no|all|any|not|can|cannot|will|has|have|or|and|least|only|der|die|das|und|ist|nicht|muss|wird|le|la|les|des|est"
    r"|pas|doit|el|los|una|que)\b"
)
_CJK = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")
"""A sentence, in a value: passwords are typed in letters that every keyboard has."""
_ABOUT = word_set("""
    a abgelaufen able accepted active adults again all allowed and anfordern approved are at au aucun available be
    bitte blank by caducada caducado cambiada cambiado can't cannot caracteres caratteri changed characters correct
    correcta correcto court daily darf deactivated debe denied digits dimenticata disabled does empty enabled
    encrypted erforderlich errata error esqueceu esqueci expire expired fail failed failure falsch falta faux fehlt
    field for forgot forgotten friday geandert geen geldig gesetzt gewijzigd granted gultig has hashed hidden in
    inactive include incorrect incorrecta incorrecte incorrecto incorreta invalid invalida invalide invalido is it
    ja kein keine korrekt kurz lang later leave leeg leer length less letters long lost mancante manquant masked
    match maximum medium mindestens minimaal minimo minimum minstens mismatch missing modifie moins monday mot muss
    must nee needed nein nessuna never new nicht ninguna ninguno no noch non none not nothing obligatoire
    obligatoria obligatorio of ok okay olvidada olvidado omit on ongeldig onjuist only optional or oublie oui
    pending perdu please rejected renewed requerida required requis reset retry revoked richtig rotated same
    same-origin saved sbagliata scaduta scaduto sent separately set short should si soon stored strong tbd tekens
    tener than the this to today todo tomorrow too trop try unavailable unchanged ungultig unknown unset unsupported
    until unverandert up updated vacia vacio valid valida valide valido vazia ver vergessen vergeten verkeerd
    verlopen verplicht vide vuota was weak weekly will wrong year yes yet zeichen zu zurucksetzen
""")
"""Words that say how a secret is, as in `password: expired`, without accents."""
_ELSEWHERE = re.compile(
    r"(?i)(?:see|ask|from|via|in|siehe|frag|aus|voir|demander|ver|vedi|zie|vraag)(?: (?:1password|[a-z-]+)){1,3}"
)
_NOTHING_SECRET = re.compile(
    r"(?i:(?:[rehp]s|sha|aes|rsa|ed|hmac|ecdsa|bcrypt|argon|pbkdf)-?\d{1,5}(?:[-_]\w+)*"
    r"|(?:alt|ctrl|shift|cmd|f\d{1,2})(?: ?\+ ?\w+| to \w+)?|read-?(?:only|write)?"
    r"|(?:await|new|lambda|function|return)\b.*)"
    r"|<[a-z]+|`[a-z]+|[~.]{0,2}(?:/[a-z_.-]{2,30}){2,8}"
)
"""Names of algorithms, keys of a keyboard, code, and paths."""
_AFTER_SCHEME = re.compile(r"(?i)\A(?:bearer|basic|token)\s+")
_NO_PROSE = re.compile(r"\d[A-Za-z]|[A-Za-z]\d|[#$%&*+<>=@^~]")


def is_placeholder(value: str, *, is_quoted: bool = False) -> bool:
    """Whether a value stands for a secret and is none: `null`, `****`, `<your key>`, `${TOKEN}`, `os.environ[...]`."""
    value = _AFTER_SCHEME.sub("", value[:256])
    bare = value.strip("\"'`.,;:!?() ")
    if _NOTHING_SECRET.fullmatch(bare) or _ELSEWHERE.fullmatch(bare) or _is_about(bare):
        return True
    is_prose = not is_quoted and value.count(" ") > 1 and _PROSE.search(value) and not _NO_PROSE.search(value)
    return bool(is_prose) or _CJK.search(value) is not None or _PLACEHOLDER.fullmatch(value) is not None


def _is_about(value: str) -> bool:
    """Whether all of its words say how a secret is. Short numbers count as words: `at least 8 characters`."""
    words = [word.strip("\"'.,;:!?()") for word in folded(value).split()]
    return not _ABOUT.isdisjoint(words) and all(
        word in _ABOUT or (word.isdecimal() and len(word) < 3) for word in words
    )
