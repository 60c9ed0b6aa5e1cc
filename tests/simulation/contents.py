"""The sources that producers put: kinds of the zoo, in which every record has its own number.

Each kind is written once as a template, with a placeholder wherever its software would write a
word; producers put the template with numbers filled in. So all sources of a kind have the same
length: an overwrite changes only the ETag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tests.zoo.chance import Chance
from tests.zoo.families import KINDS
from tests.zoo.kinds import JOINED
from tests.zoo.readers import Reader, json_lines, lines

#: Kinds by the suffix of a name; a schedule takes one of each, and the first is the dull choice.
MENU: Mapping[str, tuple[str, ...]] = {
    ".json": ("JSON lines", "Docker json-file", "CloudTrail"),
    ".gz": ("nginx access", "syslog in files", "S3 access", "CRI container log", "CloudFront v1"),
    ".csv": ("DMS with column names", "S3 Storage Lens"),
    ".dat": ("XML", "YAML", "PDF", "JSON array of one"),
}
_PLACE = re.compile(rb"record-@@@@(\d)")
_NUMBER = re.compile(r"record-(\d+)")
_RECORDS_EACH = 2


class _Marking(Chance):
    """Writes two records in place of rows, and placeholders for numbers in place of words."""

    _record = 0

    def word(self) -> str:
        return f"record-@@@@{self._record}"

    def words(self, low: int = 2, high: int = 7) -> str:
        del low, high
        return self.word()

    def path(self) -> str:
        return "/" + self.word()

    def host(self) -> str:
        return self.word()

    def rows(self, row: Callable[[], str], low: int = 3, high: int = 12, *, end: str = "\n") -> str:
        del low, high
        return "".join(row() + end for self._record in range(_RECORDS_EACH))


@dataclass(frozen=True)
class Contents:
    """A kind of source as producers put it.

    Attributes:
        reader: the kind's reader.
        joined: its sources can be compacted; others must be left alone.
        records: the number of records in each source.
    """

    reader: Reader
    joined: bool
    records: int
    _template: bytes

    def numbered(self, first: int) -> bytes:
        """Return a source whose records are numbered from this number."""
        return _PLACE.sub(lambda place: b"record-%05d" % (first + int(place[1])), self._template)

    @property
    def unnumbered(self) -> bytes:
        """Return a source whose records have no number."""
        return _PLACE.sub(rb"record-other-\1", self._template)


@cache
def contents(name: str) -> Contents:
    """Return the contents of a kind of the zoo, by its name."""
    kind = KINDS[name]
    made = kind.write(_Marking(name, 0, 0, 1))
    template = made.encode() if isinstance(made, str) else made
    records = len(set(_PLACE.findall(template)))
    return Contents(kind.reader, kind.expected == JOINED, records, template)


def numbers(body: bytes) -> Iterator[int]:
    """Yield the numbers of the records that the kind's reader finds in a source or an output.

    Raises:
        ValueError: a record has two numbers, because records were glued; or it has no number while
            others do, because no producer wrote it.
    """
    strange = 0
    for record, count in _reader(body)(body).items():
        found = {int(number) for number in _NUMBER.findall(repr(record[1:]))}
        if len(found) > 1:
            raise ValueError(f"records {sorted(found)} are one to a reader")
        strange += not found
        for number in found:
            yield from [number] * count
    if strange and _NUMBER.search(body.decode("latin-1")):
        raise ValueError(f"a reader sees {strange} records that nobody wrote")


def _reader(body: bytes) -> Reader:
    """Return the reader that a person would choose by the first bytes."""
    for opening, reader in _openings():
        if body.startswith(opening):
            return reader
    return lines


@cache
def _openings() -> tuple[tuple[bytes, Reader], ...]:
    """Return the first bytes of the kinds that are not lines, with their readers."""
    some = [contents(name) for names in MENU.values() for name in names]
    openings = {one._template[:9]: one.reader for one in some if one.reader is not lines}
    return (*openings.items(), (b"{", json_lines))
