"""The data sets: generated objects of one kind each, and digests of their records."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from compactor.money import estimate as speed
from compactor_local.generate import generate

_GZIP_LEVEL = 6
_GZIP_MAGIC, _PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"
# The partitions are closed, and their sources have settled.
_AGE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Objects of one kind.

    Attributes:
        kind: of the generator.
        objects: number of objects.
        records: mean number of records per object.
        is_gzip: whether objects are gzip, of one member each.
        settings: of the runs over it.
        speed: name of the speed, for plans, that follows from this set and the other of this speed,
            which has objects of another size and is alike otherwise.
    """

    kind: str
    objects: int
    records: int
    is_gzip: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    speed: str = ""

    @property
    def makes_rows(self) -> bool:
        """Whether its records become the rows of Parquet."""
        return "parquet" in self.settings.values()


_TO_ROWS, _PARQUET = {"output_format": "parquet"}, {"format": "parquet"}
SETS: Mapping[str, DataSet] = {
    "json-4k": DataSet("json", 20_000, 13),
    "json-4k-many": DataSet("json", 100_000, 13, speed=speed.LINES),
    "json-100k": DataSet("json", 2_000, 340, speed=speed.LINES),
    "json-4k-gzip": DataSet("json", 20_000, 13, is_gzip=True, speed=speed.LINES_GZIP),
    "json-100k-gzip": DataSet("json", 2_000, 340, is_gzip=True, speed=speed.LINES_GZIP),
    "cloudtrail": DataSet("cloudtrail", 3_000, 25, is_gzip=True, speed=speed.CLOUDTRAIL_GZIP),
    "cloudtrail-long": DataSet("cloudtrail", 600, 500, is_gzip=True, speed=speed.CLOUDTRAIL_GZIP),
    "csv-4k": DataSet("csv", 20_000, 42, settings={"formats": [{"format": "csv", "header": True}]}),
    "rows-4k": DataSet("json", 20_000, 13, settings=_TO_ROWS, speed=speed.ROWS),
    "rows-100k": DataSet("json", 2_000, 340, settings=_TO_ROWS, speed=speed.ROWS),
    "rows-4k-gzip": DataSet("json", 20_000, 13, True, _TO_ROWS, speed.ROWS_GZIP),
    "rows-100k-gzip": DataSet("json", 2_000, 340, True, _TO_ROWS, speed.ROWS_GZIP),
    "parquet-12": DataSet("json", 5_000, 12, settings=_PARQUET, speed=speed.ROWS_PARQUET),
    "parquet-500": DataSet("json", 2_000, 500, settings=_PARQUET, speed=speed.ROWS_PARQUET),
}


class StoredObject(NamedTuple):
    """A source: its key, its bytes, and when it was written (UNIX seconds)."""

    key: str
    body: bytes
    modified: float


def objects(data_set: DataSet, days: int = 1) -> Iterator[StoredObject]:
    """Yield the objects of a set, spread over some days."""
    start = (datetime.now(UTC) - _AGE).date()
    for generated in generate(
        data_set.objects, data_set.records, kinds=[data_set.kind], start=start, days=days
    ):
        key, body = generated.key, generated.content
        if data_set.kind != "cloudtrail":
            # The bare loop joins objects as they are.
            body = body.removesuffix(b"\n") + b"\n"
            if data_set.is_gzip:
                key, body = f"{key}.gz", gzip.compress(body, _GZIP_LEVEL, mtime=0)
            elif data_set.settings == _PARQUET:
                key, body = key.replace(".json", ".parquet"), _parquet(body)
        yield StoredObject(key, body, generated.last_modified)


def _parquet(lines: bytes) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(msgspec.json.Decoder().decode_lines(lines)), sink)
    return sink.getvalue()


class Records(NamedTuple):
    """A digest of a multiset of records, which is the same in any order.

    Attributes:
        number: of records.
        digest: the sum of their hashes, valid in this process.
    """

    number: int = 0
    digest: int = 0

    def plus(self, body: bytes, data_set: DataSet) -> Records:
        """Return the digest with the records of a source or an output of a data set."""
        if body.startswith(_PARQUET_MAGIC):
            rows = pq.read_table(pa.BufferReader(body)).to_pylist()
            records = [msgspec.json.encode(row, order="sorted") for row in rows]
        else:
            plain = gzip.decompress(body) if body.startswith(_GZIP_MAGIC) else body
            records = _texts(plain, data_set.kind)
            if data_set.makes_rows:
                rows = [msgspec.json.decode(record) for record in records]
                records = [msgspec.json.encode(row, order="sorted") for row in rows]
        return Records(self.number + len(records), self.digest + sum(map(hash, records)))


class _Trail(msgspec.Struct, forbid_unknown_fields=True):
    Records: list[msgspec.Raw]


_trails = msgspec.json.Decoder(_Trail)


def _texts(plain: bytes, kind: str) -> list[bytes]:
    if kind == "cloudtrail":
        # The bare loop concatenates whole documents. Within a record the quote is escaped.
        document = _trails.decode(plain.replace(b']}{"Records":[', b","))
        return [bytes(record) for record in document.Records]
    lines = plain.split(b"\n")[:-1]
    return [line for line in lines if line != lines[0]] if kind == "csv" else lines
