"""A model of how long a query engine takes to read objects, by their number, bytes and parts.

An engine opens and decodes objects with many concurrent readers. A reader that opens an object
waits for its first byte; a part (a whole gzip or zstd object, 64 MiB of plain lines or of Parquet)
is decoded by a single reader:

    seconds = start + objects * open / readers + bytes / speed / min(readers, parts)

:data:`ATHENA` is fitted to two published pairs, whose four figures it reproduces within 5 %:

- 2,000 gzip objects of 140 KB, 16 s; compacted 6.8 s (AWS Storage Blog, "Optimizing storage costs
  and query performance by compacting small objects"). The number of outputs is not published: the
  model is fitted with 4.
- 582,000 objects of 143 KB, 40.7 s; 336 of 247 MB, 9.7 s (Upsolver, "Dealing with Small Files
  Issues on S3").

A third pair, 76 s and 10 s, comes without the number of its objects and is not part of the fit.
Four figures for five parameters prove nothing about another table: treat results as estimates,
within a factor of two.
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

#: Part size by default of engines that split plain lines and Parquet.
PART_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class Engine:
    """The parameters of an engine that query times depend on.

    Attributes:
        start_seconds: planning, and anything else that takes equally long for one object.
        open_seconds: time until one reader has an object's first byte.
        bytes_per_second: stored bytes that one reader decodes per second.
        readers: maximum number of concurrent readers.
        bytes_per_reader: the engine uses one more reader per this many bytes; 0 if it always uses
            all.
    """

    start_seconds: float
    open_seconds: float
    bytes_per_second: float
    readers: int
    bytes_per_reader: int = 0


#: The fit is described in the module's docstring.
ATHENA = Engine(
    start_seconds=2.0,
    open_seconds=0.038,
    bytes_per_second=15e6,
    readers=720,
    bytes_per_reader=40_000_000,
)


class Stored(msgspec.Struct, frozen=True):
    """The objects to read.

    Attributes:
        objects: number of objects.
        bytes: stored size.
        parts: parallelism, up to this many readers.
    """

    objects: int = 0
    bytes: int = 0
    parts: int = 0

    def __add__(self, other: Stored) -> Stored:
        """Return the sum of both."""
        return Stored(
            self.objects + other.objects, self.bytes + other.bytes, self.parts + other.parts
        )


def seconds(engine: Engine, stored: Stored) -> float:
    """Return how long the engine takes to read it all; see the module's docstring."""
    if not stored.objects:
        return engine.start_seconds
    most = engine.readers
    if engine.bytes_per_reader:
        most = min(most, math.ceil(stored.bytes / engine.bytes_per_reader))
    opening = stored.objects * engine.open_seconds / max(1, min(most, stored.objects))
    sharing = max(1, min(most, stored.parts))
    return engine.start_seconds + opening + stored.bytes / engine.bytes_per_second / sharing


def sources_of(groups: Iterable[ObjectGroup]) -> Stored:
    """Return the sources of these groups as an engine reads them."""
    found = Stored()
    for group in groups:
        # Small sources, each one part; large ones are few.
        found += Stored(len(group.sources), group.size, len(group.sources))
    return found


def outputs_of(groups: Sequence[ObjectGroup], settings: Settings) -> Stored:
    """Return the expected outputs of these groups, with the sizes that packing assumes."""
    found = Stored()
    for group in groups:
        source = packing_class(group.sources[0].key).compression
        output = group.form.encoding_of(source)
        size = math.ceil(stored_bytes(group.size, source, output))
        splits = settings.columnar or output is Compression.NONE
        found += Stored(1, size, math.ceil(size / PART_BYTES) if splits else 1)
    return found
