"""What is compacted: realistic records of the generator in objects of one size each."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import NamedTuple

from compactor.errors import InvalidInput
from compactor_cli.generator.drawing import Draw, Site
from compactor_cli.generator.events import EventRenderer
from compactor_cli.generator.trail import TrailRenderer
from compactor_dev.benchmark.digests import NO_RECORDS, Records, records_of

_GZIP_CONTAINER = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_GZIP_LEVEL = 6
_SEED = 1
# 2026-01-31T12:00:00Z, so that the same set has the same bytes on any day.
_EVENT_TIME = 1_769_860_800
_DAY = "2026-01-31"
_SITE = Site("123456789012", "us-east-1")


class Kind(StrEnum):
    """How the records of an object are written."""

    LINES = "lines"
    CLOUDTRAIL = "cloudtrail"


@dataclass(frozen=True, slots=True)
class DataSet:
    """Objects of one kind and about one size.

    Attributes:
        name: as ``--sets`` takes it; also the prefix of its keys.
        title: for people.
        objects: how many.
        rows: records of one object, before ``repeat``.
        gzip: objects are gzip of one member each.
        repeat: how often the records of an object follow each other; makes large objects
            without rendering all of them.
    """

    name: str
    title: str
    objects: int
    rows: int
    kind: Kind = Kind.LINES
    gzip: bool = False
    repeat: int = 1

    @property
    def extension(self) -> str:
        """The end of its keys."""
        return ".json.gz" if self.gzip else ".json"

    def reduced(self, objects: int) -> DataSet:
        """The same with at most so many objects."""
        return replace(self, objects=min(self.objects, objects))


class SetObject(NamedTuple):
    """One object: its name within the set, its bytes, and a digest of its records."""

    name: str
    body: bytes
    records: Records


_ALL = (
    DataSet("json-4k", "20,000 x 4 KB JSON lines", 20_000, 12),
    DataSet("json-4k-gzip", "20,000 x 4 KB JSON lines, gzip", 20_000, 12, gzip=True),
    DataSet("json-4k-many", "100,000 x 4 KB JSON lines", 100_000, 12),
    DataSet("json-100k", "2,000 x 100 KB JSON lines", 2_000, 294),
    DataSet("json-100k-gzip", "2,000 x 100 KB JSON lines, gzip", 2_000, 294, gzip=True),
    DataSet("cloudtrail", "3,000 CloudTrail, gzip", 3_000, 25, Kind.CLOUDTRAIL, gzip=True),
    DataSet("cloudtrail-long", "600 long CloudTrail, gzip", 600, 500, Kind.CLOUDTRAIL, gzip=True),
    DataSet("large", "5 x 200 MB JSON lines", 5, 29_400, repeat=20),
)

SETS: Mapping[str, DataSet] = {one.name: one for one in _ALL}


def named(names: str) -> tuple[DataSet, ...]:
    """The sets that a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in SETS:
            raise InvalidInput("--sets", name, f"some of {', '.join(SETS)}")
    return tuple(SETS[name] for name in wanted)


def objects(data_set: DataSet) -> Iterator[SetObject]:
    """The objects of a set in key order, the same ones every time."""
    trail = data_set.kind is Kind.CLOUDTRAIL
    renderer = TrailRenderer(_SEED) if trail else EventRenderer(_SEED, delimited=True)
    for index in range(data_set.objects):
        draw = _draw(data_set, index)
        texts = renderer.records(draw, data_set.rows)
        content = renderer.prologue(draw) + renderer.separator.join(texts) + renderer.epilogue
        records = records_of(text.encode() for text in texts) * data_set.repeat
        body = content.encode() * data_set.repeat
        yield SetObject(object_name(data_set, index), _encoded(data_set, body), records)


def object_name(data_set: DataSet, index: int) -> str:
    """Key of an object below its prefix; the order of keys is the order of indices."""
    return f"2026-01-31-{index:06d}{data_set.extension}"


def total(found: Iterator[SetObject]) -> Records:
    """Digest of all records of some objects."""
    return sum((one.records for one in found), NO_RECORDS)


def _encoded(data_set: DataSet, body: bytes) -> bytes:
    return zlib.compress(body, _GZIP_LEVEL, _GZIP_CONTAINER) if data_set.gzip else body


def _draw(data_set: DataSet, index: int) -> Draw:
    # Sets that differ in compression or number alone share their records.
    rng = Random(f"{data_set.kind}:{data_set.rows}:{index}")
    return Draw(rng, index, index / data_set.objects, _EVENT_TIME, _DAY, _SITE)
