"""The objects that ``compactor demo --ingest`` writes: small, with distinguishable rows."""

from __future__ import annotations

import io
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.s3.store import make_client

#: Below the source, one prefix for each format.
JSON, PARQUET = "json", "parquet"
FORMATS = (JSON, PARQUET)
ROWS = 20
_SCHEMA = pa.schema([("id", pa.int64()), ("device", pa.string()), ("reading", pa.float64())])


@dataclass(slots=True)
class Produced:
    """Counts of what was written.

    Attributes:
        put_at: row id -> UNIX seconds at which its object had been written.
        readings: sum of the rows' readings; each is a multiple of 0.25, so that the sum is exact
            in any order.
    """

    objects: int = 0
    bytes: int = 0
    readings: float = 0.0
    put_at: dict[int, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows written."""
        return len(self.put_at)


class Producer:
    """Writes objects at a steady rate, alternating between the formats.

    Args:
        endpoint_url: of the S3.
        bucket: the bucket to write to.
        prefix: prefix of the keys.
    """

    def __init__(self, endpoint_url: str, bucket: str, prefix: str) -> None:
        self.produced = Produced()
        self._s3 = make_client(endpoint_url)
        self._bucket = bucket
        self._prefix = prefix
        self._random = random.Random(20_260)

    def run(self, objects: int, a_second: float, stopped: threading.Event) -> None:
        """Write ``objects`` objects at ``a_second`` per second, unless stopped."""
        began = time.monotonic()
        for number in range(objects):
            if stopped.wait(max(0.0, began + number / a_second - time.monotonic())):
                return
            self._put(number)

    def _put(self, number: int) -> None:
        kind = FORMATS[number % len(FORMATS)]
        rows = [self._row(number * ROWS + one) for one in range(ROWS)]
        body = _ENCODERS[kind](rows)
        key = f"{self._prefix}{kind}/{number:07}.{kind}"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
        now, made = time.time(), self.produced
        made.objects += 1
        made.bytes += len(body)
        made.readings += sum(row["reading"] for row in rows)
        made.put_at.update((row["id"], now) for row in rows)

    def _row(self, number: int) -> dict[str, Any]:
        reading = self._random.randrange(4_000) / 4
        return {"id": number, "device": f"device-{number % 97:02}", "reading": reading}


def _to_json(rows: list[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _to_parquet(rows: list[Mapping[str, Any]]) -> bytes:
    body = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), body)
    return body.getvalue()


_ENCODERS: Mapping[str, Callable[[list[Any]], bytes]] = {JSON: _to_json, PARQUET: _to_parquet}
