"""Reproducible test objects: JSON lines, application logs, CSV and CloudTrail documents.

The same arguments give the same keys and the same plain bytes on every machine.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random

_DAY_SECONDS = 86_400
# Records of one object are from these seconds, at whose end it is written.
_WINDOW_SECONDS = 300
_LONGEST_DELAY_SECONDS = 900
_SAMPLED_RECORDS = 100
# Share of objects whose last line has no newline.
_UNTERMINATED = 0.05
_ACCOUNT, _REGION = "111122223333", "eu-west-1"
_SERVICES = ("cart", "catalog", "checkout", "payment", "search")
_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "INFO", "WARN", "ERROR")
_NAMES = ("Ana García", "Smith, John", 'Robert "Bob" Hill', "李雷", "Zoë O'Neil")
# Braces and quotes within strings, which a naive splitter mistakes for the end of a record.
_MESSAGES = (
    "request served",
    "cache miss, fetched from origin",
    'template "{{name}}" rendered }{ twice',
    'retrying after 503: {"code":"SlowDown"}',
    "Zahlung über 12,50 € bestätigt",
    "path C:\\temp\\upload.bin removed",
)
_COLUMNS = "order_id,ordered_at,customer,sku,description,quantity,unit_price,status\n"
_ARTICLES = ("Kettle, 1.7 l", 'Monitor 27" 4K', "T-shirt; red", "Café crème 500 g")
_CALLS: Sequence[tuple[str, str, Mapping[str, object] | None]] = (
    ("ec2", "DescribeInstances", {"instancesSet": {}, "filterSet": {}}),
    ("s3", "GetBucketAcl", {"bucketName": "shop-assets", "acl": ""}),
    ("iam", "GetUser", None),
    ("sts", "AssumeRole", {"roleSessionName": "deploy", "durationSeconds": 3600}),
)


@dataclass(frozen=True, slots=True)
class GeneratedObject:
    """One object.

    Attributes:
        key: below the prefix of all objects: ``KIND/YYYY/MM/DD/NAME``.
        content: stored bytes; those of CloudTrail are compressed by gzip.
        last_modified: UNIX seconds at which a real system would have written it.
        records: number of its records.
    """

    key: str
    content: bytes
    last_modified: float
    records: int


def generate(
    files: int,
    records: int,
    *,
    kinds: Sequence[str],
    start: date,
    days: int,
    size_bytes: int = 0,
    seed: int = 0,
) -> Iterator[GeneratedObject]:
    """Yield objects in the order of their times; each depends only on its number and these values.

    Args:
        files: number of objects.
        records: mean number of records of an object, which has half to one and a half of it.
        kinds: names from KINDS, taken in turn.
        start: first day, UTC.
        days: number of days over which the objects are spread evenly.
        size_bytes: if not 0, the mean plain size of an object, instead of ``records``.
        seed: of the random values.
    """
    midnight = datetime(start.year, start.month, start.day, tzinfo=UTC)
    mean_records = {
        kind: size_bytes / _mean_bytes(kind, midnight) if size_bytes else records for kind in kinds
    }
    for number in range(files):
        random = Random(f"{seed}:{number}")
        kind = kinds[number % len(kinds)]
        seconds = (number + random.random()) / files * days * _DAY_SECONDS
        end = midnight + timedelta(seconds=int(seconds))
        texts = _texts(
            kind, random, end, max(1, round(mean_records[kind] * random.uniform(0.5, 1.5)))
        )
        stamp = f"{end:%Y%m%dT%H%M%SZ}_{random.getrandbits(64):016x}"
        name = f"{_ACCOUNT}_CloudTrail_{_REGION}_{stamp}" if kind == "cloudtrail" else stamp
        yield GeneratedObject(
            key=f"{kind}/{end:%Y/%m/%d}/{name}{_SUFFIXES[kind]}",
            content=_joined(kind, random, texts),
            last_modified=end.timestamp() + random.randrange(1, _LONGEST_DELAY_SECONDS),
            records=len(texts),
        )


def _mean_bytes(kind: str, at: datetime) -> float:
    sample = [_RECORDS[kind](Random(number), at) for number in range(_SAMPLED_RECORDS)]
    return len("\n".join(sample).encode()) / len(sample)


def _texts(kind: str, random: Random, end: datetime, records: int) -> Sequence[str]:
    """Return the records of one object, oldest first, all of the day that its key names."""
    midnight = end.replace(hour=0, minute=0, second=0)
    begin = max(midnight, end - timedelta(seconds=_WINDOW_SECONDS))
    step = (end - begin) / records
    return [_RECORDS[kind](random, begin + step * number) for number in range(records)]


def _joined(kind: str, random: Random, texts: Sequence[str]) -> bytes:
    """Return the stored bytes of an object."""
    if kind == "cloudtrail":
        document = '{"Records":[' + ",".join(texts) + "]}"
        return gzip.compress(document.encode(), mtime=0)
    text = "\n".join(texts)
    if random.random() >= _UNTERMINATED:
        text += "\n"
    return ((_COLUMNS if kind == "csv" else "") + text).encode()


def _event(random: Random, at: datetime) -> str:
    level = random.choice(_LEVELS)
    event = {
        "event_id": _uuid(random),
        "timestamp": _iso(at),
        "level": level,
        "service": random.choice(_SERVICES),
        "duration_ms": random.randrange(100, 200_000) / 1000,
        "user": {"id": random.randrange(10**7), "name": random.choice(_NAMES)},
        "http": {"method": random.choice(("GET", "GET", "POST")), "status": _status(random, level)},
        "tags": random.sample(("web", "mobile", "beta", "eu"), k=random.randrange(4)),
        "message": random.choice(_MESSAGES),
    }
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def _log_line(random: Random, at: datetime) -> str:
    level = random.choice(_LEVELS)
    return (
        f"{_iso(at)} {level:5} [{random.choice(_SERVICES)}] request={_uuid(random)}"
        f" status={_status(random, level)} {random.choice(_MESSAGES)}"
    )


def _order(random: Random, at: datetime) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(
        (
            f"{random.getrandbits(64):016x}",
            f"{at:%Y-%m-%d %H:%M:%S}",
            random.choice(_NAMES),
            f"SKU-{random.randrange(10**5):05d}",
            random.choice(_ARTICLES),
            random.randrange(1, 10),
            f"{random.randrange(50, 50_000) / 100:.2f}",
            random.choice(("new", "paid", "shipped", "returned")),
        )
    )
    return line.getvalue()


def _trail_record(random: Random, at: datetime) -> str:
    service, name, parameters = random.choice(_CALLS)
    user = random.choice(("ana", "bo", "ci-deploy"))
    record = {
        "eventVersion": "1.10",
        "userIdentity": {
            "type": "IAMUser",
            "arn": f"arn:aws:iam::{_ACCOUNT}:user/{user}",
            "accountId": _ACCOUNT,
            "userName": user,
        },
        "eventTime": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "eventSource": f"{service}.amazonaws.com",
        "eventName": name,
        "awsRegion": _REGION,
        "sourceIPAddress": f"198.51.100.{random.randrange(1, 255)}",
        "userAgent": "Boto3/1.34.131 md/Botocore#1.34.131 ua/2.0 os/linux",
        "requestParameters": parameters,
        "responseElements": None,
        "requestID": _uuid(random),
        "eventID": _uuid(random),
        "readOnly": True,
        "eventType": "AwsApiCall",
        "managementEvent": True,
        "recipientAccountId": _ACCOUNT,
        "eventCategory": "Management",
    }
    return json.dumps(record, separators=(",", ":"))


def _status(random: Random, level: str) -> int:
    return random.choice((500, 502, 503)) if level == "ERROR" else random.choice((200, 201, 304))


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _uuid(random: Random) -> str:
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


_RECORDS: Mapping[str, Callable[[Random, datetime], str]] = {
    "json": _event,
    "log": _log_line,
    "csv": _order,
    "cloudtrail": _trail_record,
}
_SUFFIXES = {"json": ".json", "log": ".log", "csv": ".csv", "cloudtrail": ".json.gz"}
KINDS = tuple(_RECORDS)
