"""The type of value that a CSV field reads as: a number, a time, an address and so on.

Types distinguish the names of columns from their values: if all values of a column are of one
type and its name is not, the name is a header. A field of no type is text, and proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

#: The type of a field without a value: empty, or a word such as "null".
NULL = "null"
#: The type of a field that has none of the types below.
TEXT = ""

_LONGEST = 512
#: Words for a missing value. In a column that has one, other words may be values, too.
NULL_WORDS = ("unknown", "missing", "undefined", "unavailable", "no data")
_NULL = re.compile(r"|--?|\\n|\?|n/a|na|nan|nil|none|null|#n/a|" + "|".join(NULL_WORDS))
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)"
)
_DAY = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{4}-W\d\d(?:-\d)?"
    rf"|(?:{_WEEKDAY},? +)?(?:\d{{1,2}}[-/ ]{_MONTH}|{_MONTH} +\d{{1,2}})(?:,?[-/ ]\d{{2,4}})?)"
)
_CLOCK = (
    r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[ap]\.?m\.?)?"
    r"(?: ?(?:z|[a-z]{3,4}|(?:utc|gmt)?[+-]\d\d(?::?\d\d)?))?(?:\[[\w/]+\])?"
)
_TYPES = {
    "number": (
        r"[+-]?[$\u20ac\u00a3]?(?:\d+|\d{1,3}(?:[,']\d{3})+)(?:[.,]\d*)?(?:e[+-]?\d+)?"
        r" ?[%$\u20ac\u00a3]?|[+-]?\.\d+(?:e[+-]?\d+)?|[+-]?inf(?:inity)?"
    ),
    "time": (
        rf"\[?(?:{_DAY}[t ,:_-]{{0,3}}(?:at )?)?{_CLOCK}(?: \d{{4}})?\]?|{_DAY}"
        r"|\d{8}t\d{4,6}(?:[.,]\d+)?z?|\d{4}-\d\d-\d\dt\d\d(?:\d\d){0,2}z?|\d{4}-\d\d"
        rf"|{_MONTH}[- ]\d{{2,4}}"
    ),
    "address": (
        r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5}|/\d{1,2})?|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}"
        r"|\[?[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:%\w+)?\]?(?:[:/]\d+)?"
        r"|::ffff:\d{1,3}(?:\.\d{1,3}){3}"
    ),
    "uuid": r"\{?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?",
    "path": r"[a-z][a-z0-9+.-]*://\S*|/\S*|[a-z]:\\.*|\\\\\S+|arn:[a-z-]+:\S*",
    "digest": r"(?:(?:sha|md)\d{1,3}[:-])?(?=[a-f]*\d)[0-9a-f]{16,}|(?:i|eni|vpc|vol)-[0-9a-f]{8,}",
    "mail": r"[^@\s]+@[^@\s]+\.[a-z]{2,}",
    "boolean": r"true|false",
}
# Every type except boolean and infinity has one of these, and most texts have none.
_MARK = re.compile(r"[\d/:@\\]")


# Compiled on demand: it takes milliseconds, and most workers have no CSV.
@cache
def _any_type() -> re.Pattern[str]:
    types = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _TYPES.items())
    return re.compile(types, re.IGNORECASE)


@lru_cache(4096)
def type_of(field: str) -> str:
    """Return the type of one field: a name of the table above, ``NULL`` or ``TEXT``."""
    text = field.strip()
    if len(text) > _LONGEST:
        return TEXT
    if not _MARK.search(text):
        lower = text.lower()
        if _NULL.fullmatch(lower):
            return NULL
        return {"true": "boolean", "false": "boolean", "inf": "number"}.get(lower, TEXT)
    found = _any_type().fullmatch(text)
    if found is not None:
        return found.lastgroup or TEXT
    return NULL if _NULL.fullmatch(text.lower()) else TEXT


def column_type(fields: Iterable[str]) -> str:
    """Return the type that all fields of a column share, nulls apart, or ``TEXT``.

    Returns ``NULL`` for a column without values.
    """
    found = NULL
    for field in fields:
        one = type_of(field)
        if one in (NULL, found):
            continue
        if found != NULL or one == TEXT:
            return TEXT
        found = one
    return found
