"""What kind of value a field reads as, and whether it may be the name of a column.

A value of a certain kind is never the name of a column, unless the columns are a scale (the hours
of a day, the quantiles of a distribution). Whole numbers, years and days do occur as names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache, lru_cache

EMPTY = ""
#: Kinds that no name of a column is of.
CERTAIN = frozenset({"moment", "address", "uuid", "number", "path", "digest", "mail", "request"})

_LONGEST_NAME = 128
_MOST_WORDS = 10
# Kinds of such are kept.
_SHORT_FIELD = 32
_NULL = re.compile(
    r"--?|\\n|\?|n/a|na|nan|nil|none|null|#n/a|unknown|missing|undefined|unavailable|no data"
)
_BOOLEAN = re.compile(r"true|false|yes|no|on|off")
#: Flags, and what log records say: no column is called so in capitals.
WORD = (
    r"[TFYN]|GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH|OK|INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL"
    r"|NOTICE|ACCEPT|REJECT|[Ii]nf(?:inity)?"
)
_WORD = re.compile(WORD)
_WORDS = re.compile(rf"(?:{WORD})?(?:\n(?:{WORD})?)*")
_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_WEEKDAYS = (
    r"mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?"
)
_DAY = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{4}-W\d\d(?:-\d)?"
    rf"|(?:(?:{_WEEKDAYS}),? +)?(?:\d{{1,2}}[-/ ](?:{_MONTHS})|(?:{_MONTHS}) +\d{{1,2}})"
    r"(?:,?[-/ ]\d{2,4})?)"
)
_TIME = (
    r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[ap]\.?m\.?)?"
    r"(?: ?(?:z|[a-z]{3,4}|(?:utc|gmt)?[+-]\d\d(?::?\d\d)?))?(?:\[[\w/]+\])?"
)
_KINDS = {
    "whole": r"\d+|\d{1,3}(?:,\d{3})+",
    "moment": (
        rf"\[?(?:{_DAY}[t ,:_-]{{0,3}}(?:at )?)?{_TIME}(?: \d{{4}})?\]?"
        r"|\d{8}t\d{4,6}(?:[.,]\d+)?z?|\d{4}-\d\d-\d\dt\d\d(?:\d\d){0,2}z?"
    ),
    "number": (
        r"[+-]?[$\u20ac\u00a3]?(?:\d+|\d{1,3}(?:,\d{3})+)\.\d*(?:e[+-]?\d+)? ?[%$\u20ac\u00a3]?"
        r"|[+-]?\.\d+(?:e[+-]?\d+)?|[+-]?\d+e[+-]?\d+|[+-]\d+|[+-]?\d+,\d+"
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
    "request": r"[a-z]{3,7} \S+ http/\d(?:\.\d)?|mozilla/\d.*",
    "day": rf"{_DAY}|\d{{4}}-\d\d|(?:{_MONTHS})[- ]\d{{2,4}}",
}
#: What most values look like, or nothing.
USUAL_VALUE = (
    r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?|-?\d+(?:\.\d+)?|true|false)?"
)
# Every kind has one of these, and most texts have none.
_MARK = re.compile(r"[\d/:@\\]")
_NAME = re.compile(r"[^\W\d][\w .:/()%#&$@+*?'\[\]<>\u00b0-]*")
# Ends of what people number (web-1), versions, parts of sentences and of paths.
_NO_NAME = re.compile(r"-\d|/\d|\d\.\d| /|: |\.$|\. ")


def kind_of(field: str) -> str | None:
    """The kind of value that a field reads as.

    Returns:
        ``EMPTY`` for nothing or a word for it, None for any other text.
    """
    text = field.strip()
    found = _any_kind().fullmatch(text) if _MARK.search(text) else None
    if found is not None:
        return found.lastgroup
    lower = text.lower()
    if _day_name().fullmatch(lower):
        return "day"
    if not lower or _NULL.fullmatch(lower):
        return EMPTY
    if _BOOLEAN.fullmatch(lower):
        return "boolean"
    return "word" if _WORD.fullmatch(text) else None


def are_values(fields: Sequence[str]) -> bool:
    """Whether every field reads as a value or is empty, and one at least is no word for nothing."""
    text = "\n".join(fields)
    if _usual_values().fullmatch(text):
        return bool(text.strip("\n"))
    kind = _kind_of_known(fields[0])
    if kind is None or (kind == "word" and _WORDS.fullmatch(text)):
        return False
    # One search where all are of the kind of the first; a field of several lines is one field.
    if kind in _KINDS and text.count("\n") < len(fields) and _column(kind).fullmatch(text):
        return True
    kinds = {_kind_of_known(field) for field in fields}
    return None not in kinds and not kinds <= {EMPTY, "word"}


def _kind_of_known(field: str) -> str | None:
    return _kind_of_short(field) if len(field) <= _SHORT_FIELD else kind_of(field)


@lru_cache(4096)
def _kind_of_short(field: str) -> str | None:
    # Many columns have few different values.
    return kind_of(field)


def are_of_kind(kind: str, fields: Sequence[str]) -> bool:
    """Whether every field is of a kind or empty, and one at least is not empty.

    Among numbers with a fraction there may be whole ones.
    """
    if _column(kind).fullmatch("\n".join(fields)):
        return any(kind_of(field) == kind for field in fields)
    return False


# These take milliseconds to compile, and most workers meet no table.
@cache
def _any_kind() -> re.Pattern[str]:
    kinds = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _KINDS.items())
    return re.compile(kinds, re.IGNORECASE)


@cache
def _usual_values() -> re.Pattern[str]:
    return re.compile(rf"{USUAL_VALUE}(?:\n{USUAL_VALUE})*")


@cache
def _day_name() -> re.Pattern[str]:
    return re.compile(rf"{_MONTHS}|{_WEEKDAYS}")


@lru_cache(len(_KINDS))
def _column(kind: str) -> re.Pattern[str]:
    pattern = _KINDS[kind] + (f"|{_KINDS['whole']}" if kind == "number" else "")
    field = rf" *(?:{pattern}|-)? *"
    return re.compile(rf"{field}(?:\n{field})*", re.IGNORECASE)


def is_name(field: str) -> bool:
    """Whether a field may be the name of a column, and reads as nothing else."""
    # A name may be broken into lines, as spreadsheets have them.
    text = " ".join(field.split())
    return (
        len(text) <= _LONGEST_NAME
        and _NAME.fullmatch(text) is not None
        and _NO_NAME.search(text) is None
        and text.count(" ") < _MOST_WORDS
        and kind_of(text) is None
    )


def is_scale(fields: list[str]) -> bool:
    """Whether numbers may name columns: quantiles, or steps of equal size.

    Args:
        fields: of a record, those of them that are no numbers first.
    """
    try:
        numbers = [float(field) for field in fields[0 if kind_of(fields[0]) else 1 :]]
    except ValueError:
        return False
    steps = [after - before for before, after in itertools.pairwise(numbers)]
    if not steps or min(steps) <= 0:
        return False
    quantiles = numbers[0] >= 0 and numbers[-1] <= 1
    return quantiles or (len(steps) > 1 and max(steps) - min(steps) < 1e-9 * max(steps))
