"""The data sets: generated records in objects of one size each, and their digests."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from random import Random
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from compactor_cli.generator.access import BucketAccessRenderer
from compactor_cli.generator.drawing import Draw, Renderer, Site
from compactor_cli.generator.events import EventRenderer
from compactor_cli.generator.orders import COLUMNS, OrderRenderer
from compactor_cli.generator.trail import TrailRenderer

_GZIP_CONTAINER = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_GZIP_LEVEL = 6
_SEED = 1
# 2026-01-31T12:00:00Z, so that a set has the same bytes on any day.
_EVENT_TIME = 1_769_860_800
_DAY = "2026-01-31"
_SITE = Site("123456789012", "us-east-1")
_MODULUS = 1 << 128
_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"
# Loops that do not parse CloudTrail concatenate whole documents. This sequence cannot occur within
# a record, where the quote would be escaped.
_BETWEEN_DOCUMENTS = b']}{"Records":['


class Kind(StrEnum):
    """The format of an object's records."""

    LINES = "lines"
    CLOUDTRAIL = "cloudtrail"
    CSV = "csv"
    ACCESS = "access"
    PARQUET = "parquet"

    @property
    def header(self) -> bytes | None:
        """Prefix of its header lines; None without a header."""
        return f"{COLUMNS[0]},{COLUMNS[1]},".encode() if self is Kind.CSV else None

    @property
    def extension(self) -> str:
        """Suffix of its keys, without compression."""
        others = {Kind.CSV: ".csv", Kind.ACCESS: ".log", Kind.PARQUET: ".parquet"}
        return others.get(self, ".json")


_RENDERERS: Mapping[Kind, Callable[[], Renderer]] = {
    Kind.LINES: lambda: EventRenderer(_SEED, delimited=True),
    Kind.CLOUDTRAIL: lambda: TrailRenderer(_SEED),
    Kind.CSV: lambda: OrderRenderer(_SEED),
    Kind.ACCESS: lambda: BucketAccessRenderer(_SEED),
    Kind.PARQUET: lambda: EventRenderer(_SEED, delimited=True),
}


@dataclass(frozen=True, slots=True)
class Records:
    """A digest of a multiset of records.

    Attributes:
        count: number of records.
        digest: sum of their 128-bit hashes modulo 2**128. It does not depend on the order;
            different multisets of one count have the same sum with probability 2**-128.
    """

    count: int = 0
    digest: int = 0

    def __add__(self, other: Records) -> Records:
        return Records(self.count + other.count, (self.digest + other.digest) % _MODULUS)


class _Trail(msgspec.Struct, forbid_unknown_fields=True):
    Records: list[msgspec.Raw]


_trails = msgspec.json.Decoder(_Trail)


def records_of(records: Iterable[bytes | memoryview]) -> Records:
    """Return the digest of records, given without line ends."""
    count = digest = 0
    for record in records:
        count += 1
        digest += int.from_bytes(blake2b(record, digest_size=16).digest())
    return Records(count, digest % _MODULUS)


def of_values(rows: Iterable[Any]) -> Records:
    """Return the digest of rows, or of the JSON records that they were; null is no value."""
    return records_of(msgspec.json.encode(_present(row), order="sorted") for row in rows)


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _present(one) for name, one in value.items() if one is not None}
    return [_present(one) for one in value] if isinstance(value, list) else value


def of_output(body: bytes, kind: Kind) -> Records:
    """Return the digest of an output, gzip or not; empty if the output cannot be read."""
    if body.startswith(_PARQUET_MAGIC):
        return of_values(pq.read_table(pa.BufferReader(body)).to_pylist())
    try:
        plain = gzip.decompress(body) if body.startswith(_GZIP_MAGIC) else body
        if kind is Kind.CLOUDTRAIL:
            joined = plain.replace(_BETWEEN_DOCUMENTS, b",")
            return records_of(memoryview(record) for record in _trails.decode(joined).Records)
    except (OSError, EOFError, ValueError):
        return Records()
    lines = (line.removesuffix(b"\n") for line in io.BytesIO(plain))
    header = kind.header
    return records_of(line for line in lines if header is None or not line.startswith(header))


@dataclass(frozen=True, slots=True)
class DataSet:
    """Objects of one kind and about one size.

    Attributes:
        name: name for ``--sets``; also the prefix of its keys.
        title: description.
        objects: number of objects.
        rows: records per object.
        gzip: whether objects are gzip, of one member each.
        to_rows: whether their records become the rows of Parquet.
    """

    name: str
    title: str
    objects: int
    rows: int
    kind: Kind = Kind.LINES
    gzip: bool = False
    to_rows: bool = False

    @property
    def extension(self) -> str:
        """Suffix of its keys."""
        return self.kind.extension + (".gz" if self.gzip else "")

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the runs over it."""
        if self.to_rows:
            return {"format" if self.kind is Kind.PARQUET else "output_format": "parquet"}
        # A column is added at 70 % of the objects, and the evidence comes from the first thousand.
        return {"csv_header": "present"} if self.kind is Kind.CSV else {}

    @property
    def is_json(self) -> bool:
        """Whether the proving loop can read it."""
        return self.kind in (Kind.LINES, Kind.CLOUDTRAIL)

    def reduced(self, objects: int) -> DataSet:
        """Return the set with at most ``objects`` objects."""
        if objects >= self.objects:
            return self
        return replace(self, objects=objects, title=f"the first {objects:,} of {self.title}")


class SetObject(NamedTuple):
    """One object: its name within the set, its bytes, and a digest of its records."""

    name: str
    body: bytes
    records: Records


SETS: Mapping[str, DataSet] = {
    one.name: one
    for one in (
        DataSet("json-4k", "20,000 x 4 KB JSON lines", 20_000, 12),
        DataSet("json-4k-gzip", "20,000 x 4 KB JSON lines, gzip", 20_000, 12, gzip=True),
        DataSet("json-4k-many", "100,000 x 4 KB JSON lines", 100_000, 12),
        DataSet("json-100k", "2,000 x 100 KB JSON lines", 2_000, 294),
        DataSet("json-100k-gzip", "2,000 x 100 KB JSON lines, gzip", 2_000, 294, gzip=True),
        DataSet("cloudtrail", "3,000 CloudTrail, gzip", 3_000, 25, Kind.CLOUDTRAIL, gzip=True),
        DataSet(
            "cloudtrail-long", "600 long CloudTrail, gzip", 600, 500, Kind.CLOUDTRAIL, gzip=True
        ),
        DataSet("rows-4k", "20,000 x 4 KB JSON lines to rows", 20_000, 12, to_rows=True),
        DataSet(
            "rows-4k-gzip",
            "20,000 x 4 KB JSON lines to rows, gzip",
            20_000,
            12,
            gzip=True,
            to_rows=True,
        ),
        DataSet("rows-100k", "2,000 x 100 KB JSON lines to rows", 2_000, 294, to_rows=True),
        DataSet(
            "rows-100k-gzip",
            "2,000 x 100 KB JSON lines to rows, gzip",
            2_000,
            294,
            gzip=True,
            to_rows=True,
        ),
        DataSet("parquet-12", "5,000 Parquet of 12 rows", 5_000, 12, Kind.PARQUET, to_rows=True),
        DataSet("parquet-500", "2,000 Parquet of 500 rows", 2_000, 500, Kind.PARQUET, to_rows=True),
        DataSet("csv-4k", "20,000 x 4 KB CSV", 20_000, 38, Kind.CSV),
        DataSet("access-4k", "20,000 x 4 KB S3 access log", 20_000, 8, Kind.ACCESS),
    )
}


def objects(data_set: DataSet) -> Iterator[SetObject]:
    """Yield the objects of a set in key order; deterministic."""
    renderer = _RENDERERS[data_set.kind]()
    for index in range(data_set.objects):
        # Sets that differ only in compression or number share their records.
        rng = Random(f"{data_set.kind}:{data_set.rows}:{index}")
        draw = Draw(rng, index, index / data_set.objects, _EVENT_TIME, _DAY, _SITE)
        texts = renderer.records(draw, data_set.rows)
        content = renderer.prologue(draw) + renderer.separator.join(texts) + renderer.epilogue
        body = content.encode()
        if data_set.gzip:
            body = zlib.compress(body, _GZIP_LEVEL, _GZIP_CONTAINER)
        records = records_of(text.encode() for text in texts)
        if data_set.to_rows:
            values = [msgspec.json.decode(text) for text in texts]
            records = of_values(values)
            body = _parquet(values) if data_set.kind is Kind.PARQUET else body
        yield SetObject(_object_name(data_set, index), body, records)


def _parquet(rows: Sequence[Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def _object_name(data_set: DataSet, index: int) -> str:
    """Return the key of an object below its prefix; for CloudTrail in AWS's form.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
    """
    if data_set.kind is Kind.CLOUDTRAIL:
        trail = f"{_SITE.account}_CloudTrail_{_SITE.region}_20260131T1200Z"
        return f"{trail}_{index:016d}{data_set.extension}"
    return f"2026-01-31-{index:06d}{data_set.extension}"
