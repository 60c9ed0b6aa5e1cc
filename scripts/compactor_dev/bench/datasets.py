"""The data sets: generated records in objects of one size each, and their digests."""

from __future__ import annotations

import gzip
import io
import json
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

_GZIP_CONTAINER = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_GZIP_LEVEL = 6
_MODULUS = 1 << 128
_GZIP_MAGIC, _PARQUET_MAGIC = b"\x1f\x8b", b"PAR1"
_POOL = 1_024
_CSV_HEADER = "order_id,ordered_at,customer,amount,comment\n"


class Kind(StrEnum):
    """The format of an object's records."""

    LINES = "lines"
    CLOUDTRAIL = "cloudtrail"
    CSV = "csv"
    PARQUET = "parquet"


class Records(NamedTuple):
    """A digest of a multiset of records.

    Attributes:
        number: of records.
        digest: sum of their 128-bit hashes modulo 2**128. It does not depend on the order;
            different multisets of one number have the same sum with probability 2**-128.
    """

    number: int = 0
    digest: int = 0

    def plus(self, other: Records) -> Records:
        """Return the digest of both together."""
        return Records(self.number + other.number, (self.digest + other.digest) % _MODULUS)


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
    """Return the digest of rows, or of the JSON records that they were."""
    return records_of(msgspec.json.encode(row, order="sorted") for row in rows)


def of_output(body: bytes, kind: Kind) -> Records:
    """Return the digest of an output, gzip or not; empty if the output cannot be read."""
    if body.startswith(_PARQUET_MAGIC):
        return of_values(pq.read_table(pa.BufferReader(body)).to_pylist())
    try:
        plain = gzip.decompress(body) if body.startswith(_GZIP_MAGIC) else body
        if kind is Kind.CLOUDTRAIL:
            # The bare loop concatenates whole documents. Within a record the quote is escaped.
            joined = plain.replace(b']}{"Records":[', b",")
            return records_of(memoryview(record) for record in _trails.decode(joined).Records)
    except (OSError, EOFError, ValueError):
        return Records()
    header = _CSV_HEADER.encode().rstrip() if kind is Kind.CSV else None
    lines = (line.removesuffix(b"\n") for line in io.BytesIO(plain))
    return records_of(line for line in lines if line != header)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Objects of one kind and about one size.

    Attributes:
        name: name for ``--sets``; also the prefix of its keys.
        title: description.
        objects: number of objects.
        rows: records per object.
        is_gzip: whether objects are gzip, of one member each.
        to_rows: whether their records become the rows of Parquet.
    """

    name: str
    title: str
    objects: int
    rows: int
    kind: Kind = Kind.LINES
    is_gzip: bool = False
    to_rows: bool = False

    @property
    def extension(self) -> str:
        """Suffix of its keys."""
        extensions = {Kind.CSV: ".csv", Kind.PARQUET: ".parquet"}
        return extensions.get(self.kind, ".json") + (".gz" if self.is_gzip else "")

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the runs over it."""
        if self.to_rows:
            return {"format" if self.kind is Kind.PARQUET else "output_format": "parquet"}
        return {"csv_header": "present"} if self.kind is Kind.CSV else {}

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


def _sets() -> Iterator[DataSet]:
    for gzipped in (False, True):
        end, words = ("-gzip", ", gzip") if gzipped else ("", "")
        for to_rows in (False, True):
            start, into = ("rows", " to rows") if to_rows else ("json", "")
            yield DataSet(
                f"{start}-4k{end}", f"20,000 x 4 KB JSON lines{into}{words}", 20_000, 12,
                is_gzip=gzipped, to_rows=to_rows,
            )  # fmt: skip
            yield DataSet(
                f"{start}-100k{end}", f"2,000 x 100 KB JSON lines{into}{words}", 2_000, 294,
                is_gzip=gzipped, to_rows=to_rows,
            )  # fmt: skip
    trail = Kind.CLOUDTRAIL
    yield DataSet("json-4k-many", "100,000 x 4 KB JSON lines", 100_000, 12)
    yield DataSet("cloudtrail", "3,000 CloudTrail, gzip", 3_000, 25, trail, is_gzip=True)
    yield DataSet("cloudtrail-long", "600 long CloudTrail, gzip", 600, 500, trail, is_gzip=True)
    yield DataSet("parquet-12", "5,000 Parquet of 12 rows", 5_000, 12, Kind.PARQUET, to_rows=True)
    yield DataSet(
        "parquet-500", "2,000 Parquet of 500 rows", 2_000, 500, Kind.PARQUET, to_rows=True
    )
    yield DataSet("csv-4k", "20,000 x 4 KB CSV", 20_000, 60, Kind.CSV)


SETS: Mapping[str, DataSet] = {data_set.name: data_set for data_set in _sets()}


def objects(data_set: DataSet) -> Iterator[SetObject]:
    """Yield the objects of a set in key order; deterministic."""
    kind = data_set.kind
    record = _RECORDS[kind](Random(kind))
    for index in range(data_set.objects):
        # Sets that differ only in compression or number share their records.
        rng = Random(f"{kind}:{data_set.rows}:{index}")
        texts = [record(rng) for _ in range(data_set.rows)]
        records = records_of(text.encode() for text in texts)
        if kind is Kind.CLOUDTRAIL:
            body = f'{{"Records":[{",".join(texts)}]}}'.encode()
        else:
            head = _CSV_HEADER if kind is Kind.CSV else ""
            body = (head + "\n".join(texts) + "\n").encode()
        if data_set.is_gzip:
            body = zlib.compress(body, _GZIP_LEVEL, _GZIP_CONTAINER)
        if data_set.to_rows:
            values = [msgspec.json.decode(text) for text in texts]
            records = of_values(values)
            body = _parquet(values) if kind is Kind.PARQUET else body
        yield SetObject(_name(kind, index, data_set.extension), body, records)


def _name(kind: Kind, index: int, extension: str) -> str:
    """Return the key of an object below its prefix; for CloudTrail in AWS's form.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
    """
    if kind is Kind.CLOUDTRAIL:
        return f"123456789012_CloudTrail_us-east-1_20260131T1200Z_{index:016d}{extension}"
    return f"2026-01-31-{index:06d}{extension}"


def _parquet(rows: Sequence[Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def _id(rng: Random) -> str:
    return f"{rng.getrandbits(128):032x}"


def _time(rng: Random) -> str:
    second = rng.randrange(300)
    return f"2026-01-31T12:{second // 60:02d}:{second % 60:02d}Z"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _events(rng: Random) -> Callable[[Random], str]:
    """Return a source of application events, about 340 bytes each."""
    tails = [
        _json(
            {
                "level": rng.choice(("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")),
                "service": rng.choice(("checkout", "cart", "search", "payment", "session")),
                "host": f"ip-10-0-{rng.randrange(256)}-{rng.randrange(256)}",
                "duration_ms": round(rng.lognormvariate(3.0, 1.0), 3),
                "user": {"id": rng.randrange(10**8), "name": rng.choice(("Zoë O'Neil", "李雷"))},
                "http": {
                    "method": rng.choice(("GET", "GET", "POST")),
                    "path": rng.choice(("/", "/cart", "/api/v2/search?q=red%20shoes")),
                    "status": rng.choice((200, 201, 304, 503)),
                    "bytes": int(rng.lognormvariate(7.0, 1.5)),
                },
                "message": rng.choice(
                    (
                        "cache miss, fetched from origin",
                        'template "{{name}}" rendered }{ twice',
                        'retrying after 503: {"code":"SlowDown"}{"attempt":2}',
                    )
                ),
            }
        )[1:]
        for _ in range(_POOL)
    ]
    return lambda rng: f'{{"event_id":"{_id(rng)}","timestamp":"{_time(rng)}",{rng.choice(tails)}'


def _trail_records(rng: Random) -> Callable[[Random], str]:
    """Return a source of CloudTrail records, some 1,000 bytes each."""
    calls = (("ec2", "DescribeInstances"), ("s3", "GetBucketAcl"), ("kms", "Decrypt"))
    tails = []
    for _ in range(_POOL):
        service, name = rng.choice(calls)
        arn = f"arn:aws:sts::123456789012:assumed-role/deploy-{rng.randrange(50)}/session"
        issuer = {"type": "Role", "arn": arn, "accountId": "123456789012", "userName": "deploy"}
        record = {
            "eventSource": f"{service}.amazonaws.com",
            "eventName": name,
            "awsRegion": "us-east-1",
            "sourceIPAddress": f"10.1.{rng.randrange(256)}.{rng.randrange(256)}",
            "userAgent": "aws-cli/2.17.5 md/awscrt#0.20.11 ua/2.0 os/linux#6.1 lang/python#3.11.8",
            "userIdentity": {
                "type": "AssumedRole",
                "principalId": f"AROA{rng.getrandbits(64):016X}:session",
                "arn": arn,
                "accountId": "123456789012",
                "sessionContext": {
                    "sessionIssuer": issuer,
                    "attributes": {"mfaAuthenticated": "false"},
                },
            },
            "requestParameters": {"bucketName": "shop-assets", "filterSet": {}, "maxItems": 100},
            "responseElements": None,
            "readOnly": True,
            "eventType": "AwsApiCall",
            "managementEvent": True,
            "recipientAccountId": "123456789012",
            "eventCategory": "Management",
        }
        tails.append(_json(record)[1:])
    return lambda rng: (
        f'{{"eventVersion":"1.09","eventTime":"{_time(rng)}","eventID":"{_id(rng)}",'
        f'"requestID":"{_id(rng)}",{rng.choice(tails)}'
    )


def _orders(_: Random) -> Callable[[Random], str]:
    """Return a source of CSV records, about 65 bytes each, with commas in quotes."""
    return lambda rng: (
        f"{rng.getrandbits(48):012x},{_time(rng)},c{rng.randrange(10**6)},"
        f'{rng.randrange(10**5) / 100:.2f},"gift, ""red"""'
    )


_RECORDS: Mapping[Kind, Callable[[Random], Callable[[Random], str]]] = {
    Kind.LINES: _events,
    Kind.CLOUDTRAIL: _trail_records,
    Kind.CSV: _orders,
    Kind.PARQUET: _events,
}
