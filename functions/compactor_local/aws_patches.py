"""Patches for moto's other services, where order and conflicts matter.

moto 5.2.5 sends S3 notifications without a sequencer, by which a reader orders the events of a key
(`notification content structure
<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>`_). Its
Glue accepts an ``UpdateTable`` with an outdated ``VersionId``, which loses the other writer's
commit. Its DynamoDB copies a whole table for each action of a transaction, and restores that copy
when an action fails, which also reverts what other writers wrote in between.

Some of its requests take time quadratic in the number of items: a DynamoDB query sorts the items of
the whole table, and receiving an SQS message counts the messages of the queue.
"""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.s3 import notifications

from compactor_local.patching import replace

_CREATED = "ObjectCreated:"
_REMOVED = "ObjectRemoved:"
# Position of the index name among a query's arguments after the key.
_INDEX = 6


class _Sequencer:
    """Hexadecimal numbers of one length, each larger than all before."""

    def __init__(self) -> None:
        self._numbers = itertools.count(time.time_ns())

    def next(self) -> str:
        return f"{next(self._numbers):018X}"


def install() -> None:
    """Apply the patches to this process's moto."""
    _install_sequencer()
    _install_versions()
    _install_transactions()
    _install_queries()
    _install_retention()


def _install_sequencer() -> None:
    sequencer = _Sequencer()

    def event(name: str, bucket: Any, key: Any, notification_id: str) -> dict[str, Any]:
        made: dict[str, Any] = before(name, bucket, key, notification_id)
        for record in made["Records"]:
            if record["eventName"].startswith((_CREATED, _REMOVED)):
                described = record["s3"]["object"]
                described["sequencer"] = sequencer.next()
                if record["eventName"].startswith(_REMOVED):
                    # S3 sends neither for a deleted object.
                    del described["size"], described["eTag"]
        return made

    before = replace(notifications, "_get_s3_event", event)


def _install_versions() -> None:
    from moto.glue.responses import GlueResponse  # noqa: PLC0415 - only a lake has what it needs

    updating = threading.Lock()

    def update_table(response: Any) -> Any:
        with updating:
            wanted = response.parameters.get("VersionId")
            if wanted is not None:
                _require_version(response, str(wanted))
            return before(response)

    before = replace(GlueResponse, "update_table", update_table)


def _require_version(response: Any, wanted: str) -> None:
    given = response.parameters
    table = response.glue_backend.get_table(given["DatabaseName"], given["TableInput"]["Name"])
    if wanted != str(table._current_version):
        raise JsonRESTError(
            "ConcurrentModificationException",
            "Update table failed due to concurrent modifications.",
        )


def _install_transactions() -> None:
    from moto.dynamodb import models  # noqa: PLC0415 - as Glue's
    from moto.dynamodb.models.table import Table  # noqa: PLC0415 - as Glue's

    backend = models.DynamoDBBackend
    writing = threading.RLock()
    for name in ("put_item", "update_item", "delete_item", "query"):
        replace(backend, name, _one_at_a_time(getattr(backend, name), writing))

    def transact_write_items(self: Any, transact_items: Sequence[Mapping[str, Any]]) -> None:
        with writing:
            touched = [_Touched(self, action) for action in transact_items]
            try:
                before(self, transact_items)
            except Exception:
                for one in touched:
                    one.put_back()
                raise

    before = replace(backend, "transact_write_items", transact_write_items)
    replace(models, "copy", _CopiesNoTable(Table))
    _install_plain_values()


def _install_queries() -> None:
    """Let a query read only the items of its partition key."""
    from moto.dynamodb.models.table import Table  # noqa: PLC0415 - as Glue's

    asked = threading.local()

    def query(self: Any, hash_key: Any, *given: Any, **named: Any) -> Any:
        conditions = dict(named.get("hash_key_conditions") or ())
        wanted = conditions.get(self.hash_key_attr, hash_key)
        # An index may have another partition key.
        index = given[_INDEX] if len(given) > _INDEX else named.get("index_name")
        others = {one.name for one in self.global_indexes or ()}
        asked.key = None if index in others or not self.range_key_attr else wanted
        try:
            return before(self, hash_key, *given, **named)
        finally:
            asked.key = None

    def all_items(self: Any) -> list[Any]:
        key = getattr(asked, "key", None)
        if key is None:
            every: list[Any] = before_all(self)
            return every
        return list(self.items[key].values()) if key in self.items else []

    before = replace(Table, "query", query)
    before_all = replace(Table, "all_items", all_items)


def _install_retention() -> None:
    """Check the retention of messages without counting all messages of the queue."""
    from moto.sqs.models import SQSBackend  # noqa: PLC0415 - as Glue's

    def is_valid(self: Any, queue_name: str, message: Any) -> bool:
        kept = float(self.get_queue(queue_name).message_retention_period)
        return bool(message.sent_timestamp / 1000 + kept > time.time())

    replace(SQSBackend, "is_message_valid_based_on_retention_period", is_valid)


def _install_plain_values() -> None:
    """Serialize values of items unchanged: moto looks up each of ten types in five spellings."""
    from moto.core.serialize import BaseJSONSerializer  # noqa: PLC0415 - as Glue's

    def serialize(self: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if (
            shape.name == "AttributeValue"
            and isinstance(value, dict)
            and value.keys() <= {"S", "N"}
        ):
            serialized[self.get_serialized_name(shape, key)] = value
        else:
            before(self, serialized, value, shape, key)

    before = replace(BaseJSONSerializer, "_serialize_type_structure", serialize)


def _one_at_a_time(method: Callable[..., Any], lock: threading.RLock) -> Callable[..., Any]:
    def held(*args: Any, **kwargs: Any) -> Any:
        with lock:
            return method(*args, **kwargs)

    return held


class _CopiesNoTable:
    """Replaces the module ``copy``; tables are not copied."""

    def __init__(self, table: type) -> None:
        self._table = table

    def deepcopy(self, one: Any) -> Any:
        return one if isinstance(one, self._table) else copy.deepcopy(one)


class _Touched:
    """The state of an item before a transaction.

    Args:
        backend: moto's DynamoDB.
        action: of the transaction, which names the item.
    """

    def __init__(self, backend: Any, action: Mapping[str, Any]) -> None:
        from moto.dynamodb.models.dynamo_type import DynamoType  # noqa: PLC0415 - as Glue's

        what = next(iter(action.values()))
        self._table = backend.get_table(what["TableName"])
        given = what.get("Key") or what["Item"]
        names = (self._table.hash_key_attr, self._table.range_key_attr)
        self._key = [DynamoType(given[name]) if name else None for name in names]
        self._item = copy.deepcopy(self._table.get_item(*self._key))

    def put_back(self) -> None:
        """Restore the item."""
        hash_key, range_key = self._key
        if self._item is None:
            self._table.delete_item(hash_key, range_key)
        elif range_key is None:
            self._table.items[hash_key] = self._item
        else:
            self._table.items[hash_key][range_key] = self._item
