"""Whether the first row of a table is certain to be a header, judged by its cells alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from compactor.second_reading.kinds import Columns, Kind, Seen

_CAPITALS = re.compile(r"[A-Z]{1,7}")
# Values in a column; as the first cell of one, "no" may be short for number.
_BOOLEANS = frozenset({"yes", "no", "y", "n", "t", "f", "on", "off"})
_NAME = re.compile(r"[^\W\d][\w .:/()\[\]#%&+$@*?'<>\u00b0-]{0,127}")
_YEAR = re.compile(r"(?:19|20)\d\d")
# So many rows of each source are looked at, and so many characters.
_LOOKED_AT_ROWS = 5
_LOOKED_AT_CHARACTERS = 3_000

# Fields of VPC flow logs, as the AWS documentation lists them (versions 2 to 5).
_FLOW_NAMES = frozenset(
    re.findall(
        r"\S+",
        """version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes
        start end action log-status vpc-id subnet-id instance-id tcp-flags type""",
    )
)
_FLOW_NAME = re.compile(r"[a-z]+(?:-[a-z]+)*")
_FEWEST_FLOW_NAMES = 3


# These take milliseconds to compile, and most workers meet no table.
@cache
def _value() -> re.Pattern[str]:
    # What no column is called: each alternative is one way to write a value.
    return re.compile(
        r"""[+-]?(?:\d[\d_,']*)?\.?\d+(?:[eE][+-]?\d+)?\s*%?        # a number, a share
        | [$€£¥]\s?[\d.,]+ | [\d.,]+\s?[$€£¥]                        # an amount
        | 0[xX][0-9a-fA-F]+
        | \d{4}-?\d\d-?\d\d(?:[T ]?\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?)?\s*(?:Z|[+-]\d\d:?\d\d|UTC)?
        | \d{1,4}[./-]\d{1,2}[./-]\d{1,4}(?:[T ,]+\d{1,2}:\d\d(?::\d\d)?)?(?:\s*[AaPp][Mm])?
        | \d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[AaPp][Mm])?       # a time of day
        | \d{1,2}/[A-Z][a-z]{2}/\d{4}(?::\d\d){3}(?:\s[+-]\d{4})?
        | \d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?                      # an address
        | [0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?:%\w+)?(?:/\d+)?
        | [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}       # a UUID
        | (?=[a-fA-F]*\d)[0-9a-fA-F]{16,}                            # a digest
        | [Tt]rue | [Ff]alse | TRUE | FALSE
        | arn:.* | [a-z][a-z0-9+.-]*://.* | /.* | \S+@\S+\.\S+""",
        re.VERBOSE | re.DOTALL,
    )


@cache
def _data() -> re.Pattern[str]:
    # What a row begins with where it is no name: figures, a day or a month, a place, a program.
    return re.compile(
        r"""[^A-Za-z_]*\d.* | .*://.* | [/\\].* | \S+@\S+ | .*\bhttp/\d.* | mozilla/.*
        | (?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}
          (?:\W.*)?
        | [a-z]:\\.* | (?:sha|md)\d+[:-][0-9a-f]+ | [a-z]{1,4}-[0-9a-f]{8,}""",
        re.VERBOSE | re.IGNORECASE | re.DOTALL,
    )


@cache
def _nothing() -> re.Pattern[str]:
    # Neither a name nor a value: what stands for nothing, and words in capitals.
    return re.compile(
        r"""|-+ | \\n | \? | \#?n/?a | nan | nil | none | null | unknown | missing | undefined
        | unavailable | no\ data""",
        re.VERBOSE | re.IGNORECASE,
    )


def is_value(cell: str) -> bool:
    """A number, a time, an address or the like: certainly data."""
    return _value().fullmatch(cell.strip()) is not None


def look_at(columns: Columns, row: Sequence[str]) -> bool:
    """Take one more row below the first; False when enough were seen."""
    if columns.rows == _LOOKED_AT_ROWS or columns.characters > _LOOKED_AT_CHARACTERS:
        return False
    columns.rows += 1
    columns.characters += sum(map(len, row))
    values, others = columns.values, columns.others
    for number, cell in enumerate(row):
        text = cell.strip()
        if _nothing().fullmatch(text) or _CAPITALS.fullmatch(text):
            continue
        if text.lower() in _BOOLEANS or is_value(text) or _data().fullmatch(text):
            values.add(number)
        else:
            others.add(number)
    return True


def certain_header(sources: Iterable[Seen], kind: Kind) -> tuple[str, ...] | None:
    """The row that is certain to be a header of all these sources; None where none is."""
    seen = [one for one in sources if one.first is not None]
    if not seen or any(one.first != seen[0].first for one in seen):
        return None
    header = seen[0].first or ()
    if kind is Kind.FLOW:
        return header if names_flow_fields(header) else None
    if not _is_named(header) or any(one.columns.again for one in seen):
        return None
    values = set().union(*(one.columns.values for one in seen))
    others = set().union(*(one.columns.others for one in seen))
    # In one column every row has a value where the first one has a name.
    return header if any(n in values - others for n in range(len(header))) else None


def may_be_header(sources: Sequence[Seen]) -> bool:
    """True where one row is first in several sources and nowhere else, and might name columns.

    Names of columns are names; pivot tables have years among them, and what was written without
    names has 0, 1, 2.
    """
    first = {one.first for one in sources}
    if len(sources) < 2 or len(first) > 1 or any(one.columns.again for one in sources):
        return False
    cells = [cell.strip() for cell in sources[0].first or ()]
    numbers = [cell for cell in cells if cell.isdecimal()]
    counted = numbers == [str(n) for n in range(len(numbers))]
    if not counted and not all(_YEAR.fullmatch(number) for number in numbers):
        return False
    others = [cell for cell in cells if cell and not cell.isdecimal()]
    return bool(cells) and all(map(_names_column, others)) and bool(others or not cells[0])


def _is_named(header: Sequence[str]) -> bool:
    names = [cell.strip() for cell in header]
    unique = len({name.lower() for name in names}) == len(names)
    return unique and all(_names_column(name) for name in names)


def _names_column(name: str) -> bool:
    if _nothing().fullmatch(name) or is_value(name) or _data().fullmatch(name):
        return False
    return _NAME.fullmatch(" ".join(name.split())) is not None


def names_flow_fields(line: Sequence[str]) -> bool:
    """Names of fields and nothing else, those that AWS documents among them."""
    named = all(_FLOW_NAME.fullmatch(name) for name in line)
    enough = len(line) >= _FEWEST_FLOW_NAMES and len(set(line)) == len(line)
    return enough and named and len(_FLOW_NAMES.intersection(line)) >= 2
