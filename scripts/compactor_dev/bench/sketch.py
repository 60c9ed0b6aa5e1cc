"""The commonly described method of ingesting into a table, to count its faults.

An event becomes an item with a random id; a worker scans pending items, reads the objects, appends
their rows to the table, retries when the commit conflicts, and marks the items. In the careful
form, each worker has its own prefix, and each object a single item.
"""

from __future__ import annotations

import io
import random
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

_ITEMS = "sketch"
_THRESHOLD = 10
_TRIES = 5


class Sketch:
    """Registry, workers and table of the sketch.

    Args:
        clients: DynamoDB and S3.
        bucket: of the objects.
        catalog: of the table.
        table: its name, with the database; it exists, and pyiceberg does not retry its commits.
        kill_share: share of batches after whose append the worker dies before marking them.
        careful: the more careful form.
    """

    def __init__(
        self,
        clients: tuple[Any, Any],
        bucket: str,
        catalog: Catalog,
        table: str,
        *,
        kill_share: float,
        careful: bool,
    ) -> None:
        self._dynamodb, self._s3 = clients
        self._bucket, self._catalog, self._table = bucket, catalog, table
        self._kill_share, self._careful = kill_share, careful
        self._drawn = random.Random(7)
        self._counting = threading.Lock()
        self.conflicts = self.killed = 0
        self._dynamodb.create_table(
            TableName=_ITEMS,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )

    def on_event(self, key: str) -> None:
        """Handle an event, as the function would."""
        name = key if self._careful else str(uuid.uuid4())
        item = {"id": {"S": name}, "key": {"S": key}, "status": {"S": "PENDING"}}
        condition = "attribute_not_exists(id)"
        try:
            self._dynamodb.put_item(TableName=_ITEMS, Item=item, ConditionExpression=condition)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return

    def work(self, prefix: str, written: threading.Event) -> None:
        """Run a worker until everything is written and nothing is pending.

        Args:
            prefix: of its objects, in the careful form.
            written: set when all objects are written.
        """
        prefix = prefix if self._careful else ""
        while True:
            last = written.is_set()
            items = [one for one in self._pending() if one["key"]["S"].startswith(prefix)]
            if last and not items:
                return
            if not last and len(items) < _THRESHOLD:
                time.sleep(0.2)
                continue
            self._merge(items)

    def _pending(self) -> list[dict[str, Any]]:
        found = self._dynamodb.scan(
            TableName=_ITEMS,
            FilterExpression="#status = :pending",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":pending": {"S": "PENDING"}},
        )
        items: list[dict[str, Any]] = found["Items"]
        return items

    def _merge(self, items: Sequence[dict[str, Any]]) -> None:
        rows = pa.concat_tables(self._rows(item["key"]["S"]) for item in items)
        if not self._append(rows):
            return
        with self._counting:
            dies = self._drawn.random() < self._kill_share
            self.killed += dies
        if dies:
            return
        for item in items:
            self._dynamodb.update_item(
                TableName=_ITEMS,
                Key={"id": item["id"]},
                UpdateExpression="SET #status = :compacted",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":compacted": {"S": "COMPACTED"}},
            )

    def _rows(self, key: str) -> Any:
        body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        return pq.read_table(io.BytesIO(body))

    def _append(self, rows: Any) -> bool:
        for attempt in range(_TRIES):
            try:
                self._catalog.load_table(self._table).append(rows)
            except CommitFailedException:
                with self._counting:
                    self.conflicts += 1
                time.sleep(0.1 * 2**attempt)
            else:
                return True
        return False
