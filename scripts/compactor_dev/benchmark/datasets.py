"""What is compacted: realistic records of the generator in objects of one size each."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import NamedTuple, TypeVar

from compactor.errors import InvalidInput
from compactor_cli.generator.access import BucketAccessRenderer
from compactor_cli.generator.drawing import Draw, Renderer, Site, clock
from compactor_cli.generator.events import EventRenderer
from compactor_cli.generator.orders import COLUMNS, OrderRenderer
from compactor_cli.generator.trail import TrailRenderer
from compactor_dev.benchmark.digests import NO_RECORDS, Records, records_of

_GZIP_CONTAINER = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_GZIP_LEVEL = 6
_SEED = 1
# 2026-01-31T12:00:00Z, so that the same set has the same bytes on any day.
_EVENT_TIME = 1_769_860_800
_DAY = "2026-01-31"
_Named = TypeVar("_Named")
_SITE = Site("123456789012", "us-east-1")


class Kind(StrEnum):
    """How the records of an object are written."""

    LINES = "lines"
    CLOUDTRAIL = "cloudtrail"
    TEXT = "text"
    CSV = "csv"
    ACCESS = "access"

    @property
    def header(self) -> bytes | None:
        """How its header lines begin; None for a kind without."""
        return f"{COLUMNS[0]},{COLUMNS[1]},".encode() if self is Kind.CSV else None

    @property
    def extension(self) -> str:
        """The end of its keys, without compression."""
        return {Kind.TEXT: ".log", Kind.CSV: ".csv", Kind.ACCESS: ".log"}.get(self, ".json")

    def renderer(self) -> Renderer:
        """Who writes its records."""
        return _RENDERERS[self]()


class LogRenderer:
    """Lines of an application's log, some 110 bytes each: a date, a level, a thread, a message."""

    separator = "\n"
    epilogue = "\n"

    def prologue(self, draw: Draw) -> str:
        """Nothing stands before the first line."""
        return ""

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Lines of the object's five minutes, in order of time."""
        rng, times = draw.rng, clock()
        digits = rng.randbytes(8 * rows).hex()
        return [
            f"{draw.day} {times[second]}.{row * 37 % 1000:03d} {rng.choice(_LEVELS)}"
            f" [http-{rng.randrange(64)}] {rng.choice(_LOGGERS)}"
            f" - request {digits[16 * row : 16 * row + 16]} took {rng.randrange(2_000)} ms"
            for row, second in enumerate(draw.seconds(rows))
        ]


_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "INFO", "WARN", "ERROR")
_LOGGERS = ("shop.checkout.Cart", "shop.search.Index", "shop.payment.Card", "shop.web.Filter")
_RENDERERS: Mapping[Kind, Callable[[], Renderer]] = {
    Kind.LINES: lambda: EventRenderer(_SEED, delimited=True),
    Kind.CLOUDTRAIL: lambda: TrailRenderer(_SEED),
    Kind.TEXT: LogRenderer,
    Kind.CSV: lambda: OrderRenderer(_SEED),
    Kind.ACCESS: lambda: BucketAccessRenderer(_SEED),
}


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
        return self.kind.extension + (".gz" if self.gzip else "")

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
# One set for each format that is told by its content, of objects of one size: what two versions
# of the worker are compared with, for what a change costs is often a matter of one format.
FORMATS: Mapping[str, DataSet] = {
    "jsonl": SETS["json-4k"],
    "text": DataSet("text-4k", "20,000 x 4 KB of a dated log", 20_000, 41, Kind.TEXT),
    "csv": DataSet("csv-4k", "20,000 x 4 KB CSV", 20_000, 38, Kind.CSV),
    "access": DataSet("access-4k", "20,000 x 4 KB S3 access log", 20_000, 8, Kind.ACCESS),
}


def named(names: str) -> tuple[DataSet, ...]:
    """The sets that a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown.
    """
    return chosen("--sets", names, SETS)


def chosen(option: str, names: str, known: Mapping[str, _Named]) -> tuple[_Named, ...]:
    """What a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in known:
            raise InvalidInput(option, name, f"some of {', '.join(known)}")
    return tuple(known[name] for name in wanted)


def of_formats(names: str) -> tuple[DataSet, ...]:
    """The sets of the formats that a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown, or there is none.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted or [names]:
        if name not in FORMATS:
            raise InvalidInput("--format", name, f"some of {', '.join(FORMATS)}")
    return tuple(FORMATS[name] for name in dict.fromkeys(wanted))


def objects(data_set: DataSet) -> Iterator[SetObject]:
    """The objects of a set in key order, the same ones every time."""
    renderer = data_set.kind.renderer()
    for index in range(data_set.objects):
        draw = _draw(data_set, index)
        texts = renderer.records(draw, data_set.rows)
        content = renderer.prologue(draw) + renderer.separator.join(texts) + renderer.epilogue
        records = records_of(text.encode() for text in texts) * data_set.repeat
        body = content.encode() * data_set.repeat
        yield SetObject(object_name(data_set, index), _encoded(data_set, body), records)


def object_name(data_set: DataSet, index: int) -> str:
    """Key of an object below its prefix; the order of keys is the order of indices.

    CloudTrail's are as AWS writes them:
    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
    """
    if data_set.kind is Kind.CLOUDTRAIL:
        trail = f"{_SITE.account}_CloudTrail_{_SITE.region}_20260131T1200Z"
        return f"{trail}_{index:016d}{data_set.extension}"
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
