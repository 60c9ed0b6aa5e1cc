"""How long a query engine takes to read objects, by their number, bytes and parts: a model.

An engine opens objects and takes their bytes apart with many concurrent readers. A reader that
opens one waits for the first byte; a part (a whole gzip or zstd object, 64 MiB of plain lines or of
Parquet) is taken apart by one reader alone:

    seconds = start + objects * open / readers + bytes / speed / min(readers, parts)

:data:`ATHENA` is fitted to two published pairs, whose four figures it gives within 5 %:

- 2,000 gzip objects of 140 KB, 16 s; compacted 6.8 s (AWS Storage Blog, "Optimizing storage costs
  and query performance by compacting small objects"). How many outputs there were is not published:
  the model is fitted with 4.
- 582,000 objects of 143 KB, 40.7 s; 336 of 247 MB, 9.7 s (Upsolver, "Dealing with Small Files
  Issues on S3").

A third pair, 76 s and 10 s, comes without the number of its objects; it is not part of the fit.
Four figures for five parameters prove nothing of a third table: an estimate, to a factor of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from compactor.encoding.output_encoding import packing_class, stored_bytes
from compactor.model import Compression, ObjectGroup
from compactor.settings.settings import Settings
from compactor.sizes import MIB

#: What engines that split plain lines and Parquet make one part of, by default.
PART_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class Engine:
    """What the seconds of a query depend on.

    Attributes:
        start_seconds: planning, and whatever else takes as long for one object.
        open_seconds: of one reader, until it has an object's first byte.
        bytes_per_second: stored bytes that one reader takes apart.
        readers: at most, concurrently.
        bytes_per_reader: the engine takes one more reader for so many; 0 when it takes all always.
    """

    start_seconds: float
    open_seconds: float
    bytes_per_second: float
    readers: int
    bytes_per_reader: int = 0


#: See the module's own text.
ATHENA = Engine(
    start_seconds=2.0,
    open_seconds=0.038,
    bytes_per_second=15e6,
    readers=720,
    bytes_per_reader=40_000_000,
)


class Stored(msgspec.Struct, frozen=True):
    """What is read.

    Attributes:
        objects: how many.
        bytes: as stored.
        parts: so many readers can share them.
    """

    objects: int = 0
    bytes: int = 0
    parts: int = 0

    def __add__(self, other: Stored) -> Stored:
        """Both together."""
        return Stored(
            self.objects + other.objects, self.bytes + other.bytes, self.parts + other.parts
        )


def seconds(engine: Engine, stored: Stored) -> float:
    """How long the engine takes to read it all; see the module's own text."""
    if not stored.objects:
        return engine.start_seconds
    most = engine.readers
    if engine.bytes_per_reader:
        most = min(most, math.ceil(stored.bytes / engine.bytes_per_reader))
    opening = stored.objects * engine.open_seconds / max(1, min(most, stored.objects))
    sharing = max(1, min(most, stored.parts))
    return engine.start_seconds + opening + stored.bytes / engine.bytes_per_second / sharing


def sources_of(groups: Iterable[ObjectGroup]) -> Stored:
    """What the sources of these groups are to a reader."""
    found = Stored()
    for group in groups:
        # Small ones, of which each is one part; large ones are few.
        found += Stored(len(group.sources), group.size, len(group.sources))
    return found


def outputs_of(groups: Sequence[ObjectGroup], settings: Settings) -> Stored:
    """What the outputs of these groups will be to a reader, by the sizes that packing assumes."""
    found = Stored()
    for group in groups:
        source = packing_class(group.sources[0].key).compression
        output = group.form.encoding_of(source)
        size = math.ceil(stored_bytes(group.size, source, output))
        splits = settings.columnar or output is Compression.NONE
        found += Stored(1, size, math.ceil(size / PART_BYTES) if splits else 1)
    return found
