"""The kinds of readers, what a reader saw, and the names of VPC flow log fields."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import msgspec

# Fields of VPC flow logs in the AWS documentation (versions 2 to 5).
_FLOW_NAMES = frozenset(
    re.findall(
        r"\S+",
        """version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes
        start end action log-status vpc-id subnet-id instance-id tcp-flags type""",
    )
)
_FLOW_NAME = re.compile(r"[a-z]+(?:-[a-z]+)*")
_FEWEST_FLOW_NAMES = 3


def names_flow_fields(line: Sequence[str]) -> bool:
    """Return True for a line of field names only, including some that AWS documents."""
    named = all(_FLOW_NAME.fullmatch(name) for name in line)
    enough = len(line) >= _FEWEST_FLOW_NAMES and len(set(line)) == len(line)
    return enough and named and len(_FLOW_NAMES.intersection(line)) >= 2


_MASK = (1 << 64) - 1


class Kind(StrEnum):
    """How bytes are read.

    ``JSON_LINES`` is lenient, as for a source that may hold anything between its records;
    ``STRICT_JSON_LINES`` is the reader of an output, which requires one value on each line.
    """

    TEXT = "lines"
    CR_TEXT = "lines ended by CR alone"
    JSON_LINES = "JSON lines"
    STRICT_JSON_LINES = "JSON lines, one value each"
    JSON_STREAM = "JSON values one after the other"
    JSON_DOCUMENT = "a JSON document"
    TRAIL = "a document of Records"
    TRAIL_LINES = "CloudTrail records on lines"
    LIST = "a document of one list and its fields"
    ARRAY = "a JSON array"
    ARRAY_LINES = "elements of JSON arrays on lines"
    TABLE = "a table"
    FLOW = "flow logs with a header"
    W3C = "W3C logs"
    DOCUMENT = "a document"
    BINARY = "binary content"


#: Readings of an object as a whole; two such objects cannot be concatenated.
WHOLE = frozenset({Kind.JSON_DOCUMENT, Kind.DOCUMENT, Kind.BINARY})
#: Readings whose first row may be a header, or hold the fields next to the records.
HEADED = frozenset({Kind.TABLE, Kind.FLOW, Kind.LIST})


@dataclass(frozen=True, slots=True)
class Reading:
    """A reader's kind; ``delimiter`` applies to tables."""

    kind: Kind
    delimiter: str = ","

    def as_output(self, *, document_lines: bool = False, stream_as_is: bool = False) -> Reading:
        """Return how the destination's readers read the output of sources with this reading.

        Args:
            document_lines: CloudTrail records and elements of JSON arrays are written one per line.
            stream_as_is: JSON values stay concatenated, as in a source that S3 copied.
        """
        if self.kind is Kind.TRAIL and document_lines:
            return replace(self, kind=Kind.TRAIL_LINES)
        if self.kind is Kind.ARRAY and document_lines:
            return replace(self, kind=Kind.ARRAY_LINES)
        if self.kind is Kind.JSON_LINES:
            return self if stream_as_is else replace(self, kind=Kind.STRICT_JSON_LINES)
        if self.kind is Kind.JSON_STREAM and not stream_as_is:
            return replace(self, kind=Kind.STRICT_JSON_LINES)
        return self


class Tally(NamedTuple):
    """A number of records, and a digest of them that does not depend on their order.

    The digest is a sum of 64-bit hashes with the process's own seed: tallies can only be compared
    within one process.
    """

    records: int = 0
    digest: int = 0

    def plus(self, other: Tally, times: int = 1) -> Tally:
        """Return the sum of both, with the other one counted ``times`` times."""
        digest = (self.digest + times * other.digest) & _MASK
        return Tally(self.records + times * other.records, digest)


_NONE = Tally()


def tally(records: Iterable[Hashable]) -> Tally:
    """Return the tally of these records."""
    hashes = [hash(record) for record in records]
    return Tally(len(hashes), sum(hashes) & _MASK)


class Seen(msgspec.Struct):
    """What a reader saw.

    Attributes:
        records: all of them except a ``first`` row that may be a header.
        first: that row, if this kind of reading has one.
        open_end: what is still open at the end, in words; empty if nothing is.
        fault: why such a reader cannot read this, in words; empty if it can.
        glued: number of lines with more than one value, where one is required.
    """

    records: Tally = _NONE
    first: tuple[str, ...] | None = None
    open_end: str = ""
    fault: str = ""
    glued: int = 0

    def without(self, header: tuple[str, ...] | None) -> Tally:
        """Return the records, not counting the first row if it equals this header."""
        if self.first is None or self.first == header:
            return self.records
        return self.records.plus(tally([self.first]))
