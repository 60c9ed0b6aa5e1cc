"""Equal records, whatever their order and however they were joined."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, cast

import msgspec

_MODULUS = 1 << 128
_GZIP_MAGIC = b"\x1f\x8b"
# Clients that know nothing of CloudTrail put whole documents one behind the other. Within a
# record this cannot occur: its quote would be escaped.
_BETWEEN_DOCUMENTS = b']}{"Records":['


@dataclass(frozen=True, slots=True)
class Records:
    """A multiset of records in two numbers.

    Attributes:
        count: how many.
        digest: sum of their 128-bit hashes modulo 2**128. Different multisets of the same
            count have the same sum with probability 2**-128, and no order is needed.
    """

    count: int = 0
    digest: int = 0

    def __add__(self, other: Records) -> Records:
        return Records(self.count + other.count, (self.digest + other.digest) % _MODULUS)

    def __mul__(self, times: int) -> Records:
        return Records(self.count * times, self.digest * times % _MODULUS)


NO_RECORDS = Records()


class _Trail(msgspec.Struct, forbid_unknown_fields=True):
    Records: list[msgspec.Raw]


_trails = msgspec.json.Decoder(_Trail)


def records_of(records: Iterable[bytes | memoryview]) -> Records:
    """The digest of records given one by one, without line ends."""
    count = digest = 0
    for record in records:
        count += 1
        digest += int.from_bytes(blake2b(record, digest_size=16).digest())
    return Records(count, digest % _MODULUS)


def of_lines(stream: IO[bytes], header: bytes | None = None) -> Records:
    """The digest of lines; a last line without an end counts as one.

    Args:
        stream: what to read.
        header: lines that begin so are headers, and no records.
    """
    lines = (line[:-1] if line.endswith(b"\n") else line for line in stream)
    return records_of(line for line in lines if header is None or not line.startswith(header))


def of_trails(content: bytes) -> Records:
    """The digest of the records of one CloudTrail document, or of several in a row.

    Raises:
        ValueError: something else.
    """
    joined = content.replace(_BETWEEN_DOCUMENTS, b",")
    return records_of(memoryview(record) for record in _trails.decode(joined).Records)


def of_output(path: Path, *, trails: bool, header: bytes | None = None) -> Records:
    """The digest of a whole output, gzip or not; an output that cannot be read has none.

    Args:
        path: a local copy of it.
        trails: it holds CloudTrail documents, not lines.
        header: how lines begin that are headers; None where there are none.
    """
    with path.open("rb") as head:
        packed = head.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    try:
        with cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as stream:
            return of_trails(stream.read()) if trails else of_lines(stream, header)
    except (OSError, EOFError, ValueError):
        return NO_RECORDS
