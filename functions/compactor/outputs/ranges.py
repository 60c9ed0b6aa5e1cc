"""Reads a few sources of a large output by ranges, each beginning where decoding can begin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compactor.encoding.codecs import Limits, decompress_stream
from compactor.encoding.decoders import inflate_from_point
from compactor.errors import IntegrityError, ObjectMissing
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.model import Compression
from compactor.ports import ObjectStore
from compactor.sizes import MIB

# Size of one GET, so that a large source is not held in memory completely.
_RANGE_BYTES = 8 * MIB
# For a larger share of the output, one GET of all of it is cheaper, or not much slower.
_MOST_SHARE = 0.5
#: Maximum number of ranges, which cost a GET each; for more, the output is read from its start.
MOST_RANGES = 64


@dataclass(slots=True)
class Stretch:
    """Stored bytes that are read together.

    Attributes:
        start, end: their range in the stored output, in bytes.
        plain_at: number of plain bytes before them.
        rows: manifest rows of the sources in them, in order.
    """

    start: int
    end: int
    plain_at: int
    rows: list[ManifestRow] = field(default_factory=list)


def stretches(output: Output, rows: Sequence[ManifestRow]) -> list[Stretch] | None:
    """Return the ranges to read for these sources; None to read the output from its start.

    Args:
        output: the output that holds them; not a columnar one.
        rows: the manifest rows of the sources, in manifest order.

    Raises:
        IntegrityError: the output's points are out of order or outside of it.
    """
    is_plain = output.copied or output.compression is Compression.NONE
    if not is_plain and not output.points:
        return None
    found: list[Stretch] = []
    points = _points(output)
    for row in rows:
        one = _exact(row) if is_plain else _around(row, points, output)
        last = found[-1] if found else None
        if last is not None and one.start <= last.end:
            last.end = max(last.end, one.end)
        else:
            found.append(one)
        found[-1].rows.append(row)
    read = sum(one.end - one.start for one in found)
    return found if len(found) <= MOST_RANGES and read <= _MOST_SHARE * output.size else None


def decoded(output: Output, stretch: Stretch, store: ObjectStore) -> Iterator[bytes]:
    """Return the plain bytes of a stretch, in pieces.

    Raises:
        IntegrityError: while iterating, if the output is missing or too short.
        UnreadableSource: while iterating, if the bytes do not decompress.
    """
    stored = stored_bytes(output, stretch.start, stretch.end, store)
    if output.copied or output.compression is Compression.NONE:
        return stored
    if stretch.start:
        return inflate_from_point(stored)
    return decompress_stream(stored, output.compression, limits=Limits(None, None))


def stored_bytes(output: Output, start: int, end: int, store: ObjectStore) -> Iterator[bytes]:
    """Yield a range of the stored output in pieces, each read by one GET.

    Raises:
        IntegrityError: while iterating, if the output is missing or too short.
    """
    for at in range(start, end, _RANGE_BYTES):
        length = min(_RANGE_BYTES, end - at)
        try:
            yield store.get_range(output.bucket, output.key, at, length)
        except ObjectMissing as error:
            raise IntegrityError(f"the output is gone, or cut: {error}") from error


def _exact(row: ManifestRow) -> Stretch:
    return Stretch(row.offset, row.offset + row.length, row.offset)


def _around(row: ManifestRow, points: Sequence[tuple[int, int]], output: Output) -> Stretch:
    at = bisect_right(points, row.offset, key=_plain_of) - 1
    after = bisect_left(points, row.offset + row.length, lo=at, key=_plain_of)
    end = points[after][0] if after < len(points) else output.size
    start, plain_at = points[at]
    return Stretch(start, end, plain_at)


def _points(output: Output) -> list[tuple[int, int]]:
    """Return the points where decoding can begin, including the start of the output."""
    points = [(0, 0), *output.points]
    for (stored, plain), point in pairwise(points):
        if not (stored < point[0] <= output.size and plain < point[1]):
            raise IntegrityError(f"{output.key}: {point} is no point after {(stored, plain)}")
    return points


def _plain_of(point: tuple[int, int]) -> int:
    return point[1]
