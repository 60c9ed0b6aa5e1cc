"""The way that is often described, so that its faults can be counted.

An event becomes an item with an id of its own; a worker scans what is pending, reads the objects,
appends their rows to the table, tries again when the commit conflicts, and marks the items. Two
more forms of it take more care, each with what the one before lacks.
"""

from __future__ import annotations

import io
import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from compactor_dev.lake_bench.trips import SCHEMA

_TABLE = "sketch"
_THRESHOLD = 10
_TRIES = 5
_PENDING, _COMPACTED = "PENDING", "COMPACTED"


@dataclass(frozen=True, slots=True)
class Form:
    """How much care is taken.

    Attributes:
        own_prefix: each worker takes what lies below a prefix of its own; otherwise all of it.
        one_item: an object has one item, put on the condition that there is none.
    """

    name: str
    own_prefix: bool = False
    one_item: bool = False


#: From what is described to what the same pieces allow.
FORMS = (
    Form("as described"),
    Form("a worker a prefix", own_prefix=True),
    Form("and an item an object", own_prefix=True, one_item=True),
)


class Killed(Exception):
    """A worker ends where the bench wants it to."""


@dataclass(slots=True)
class Seen:
    """What happened to the workers."""

    conflicts: int = 0
    killed: int = 0
    given_up: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Sketch:
    """Registry, workers and table of the sketch.

    Args:
        clients: DynamoDB and S3.
        bucket: of the objects.
        catalog: of the table.
        table: its name, with the database.
        kill_share: of the batches after whose append the worker dies before it marks them.
        form: how much care it takes.
    """

    def __init__(
        self,
        clients: tuple[Any, Any],
        bucket: str,
        catalog: Catalog,
        table: str,
        *,
        kill_share: float,
        form: Form,
    ) -> None:
        self._form = form
        self._dynamodb, self._s3 = clients
        self._bucket = bucket
        self._catalog = catalog
        self._table = table
        self._kill_share = kill_share
        self._drawn = random.Random(7)
        self.seen = Seen()
        location = f"s3://{bucket}/tables/{table}"
        # Its own way of trying again counts.
        retries = {"commit.retry.num-retries": "0"}
        catalog.create_table(table, SCHEMA, location, properties=retries)
        self._dynamodb.create_table(
            TableName=_TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )

    def on_event(self, key: str) -> None:
        """What the function behind the event does."""
        name = key if self._form.one_item else str(uuid.uuid4())
        item = {"id": {"S": name}, "key": {"S": key}, "status": {"S": _PENDING}}
        try:
            self._dynamodb.put_item(
                TableName=_TABLE, Item=item, ConditionExpression="attribute_not_exists(id)"
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return

    def work(self, prefix: str, written: threading.Event) -> None:
        """One worker, until everything is written and nothing is pending.

        Args:
            prefix: of its objects, in a form where each worker has its own.
            written: set when nothing more comes.
        """
        prefix = prefix if self._form.own_prefix else ""
        while True:
            last = written.is_set()
            items = [one for one in self._pending() if one["key"]["S"].startswith(prefix)]
            if last and not items:
                return
            if not last and len(items) < _THRESHOLD:
                time.sleep(0.2)
                continue
            try:
                self._merge(items)
            except Killed:
                with self.seen.lock:
                    self.seen.killed += 1

    def _pending(self) -> list[dict[str, Any]]:
        found = self._dynamodb.scan(
            TableName=_TABLE,
            FilterExpression="#status = :pending",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":pending": {"S": _PENDING}},
        )
        items: list[dict[str, Any]] = found["Items"]
        return items

    def _merge(self, items: Sequence[dict[str, Any]]) -> None:
        rows = pa.concat_tables(self._rows(item["key"]["S"]) for item in items)
        if not self._append(rows):
            return
        with self.seen.lock:
            killed = self._drawn.random() < self._kill_share
        if killed:
            raise Killed
        for item in items:
            self._dynamodb.update_item(
                TableName=_TABLE,
                Key={"id": item["id"]},
                UpdateExpression="SET #status = :compacted",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":compacted": {"S": _COMPACTED}},
            )

    def _rows(self, key: str) -> Any:
        body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        return pq.read_table(io.BytesIO(body))

    def _append(self, rows: Any) -> bool:
        for attempt in range(_TRIES):
            try:
                self._catalog.load_table(self._table).append(rows)
            except CommitFailedException:
                with self.seen.lock:
                    self.seen.conflicts += 1
                time.sleep(0.1 * 2**attempt)
            else:
                return True
        with self.seen.lock:
            self.seen.given_up += 1
        return False
