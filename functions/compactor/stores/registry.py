"""The table of what is pending, on DynamoDB.

    pk                            sk          what
    STREAM                        stream      what the stream is
    STREAM                        batch       how far its executions are
    STREAM/heads/SHARD            /PATH       a partition
    STREAM/SHARD/PATH             /NAME       an object, by its key below the partition
    STREAM/long/PATH              /DIGEST     one whose name is too long for a key of the table

The local index ``pending`` has those whose object or partition is pending, and no others: so a
query costs as much as there is to do, however much was done before; and as it is local, it is read
consistently. A shard takes 1,000 writes a second, index included.
"""

from __future__ import annotations

import hashlib
import random
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from compactor.errors import InvalidInput, TransientStoreError
from compactor.model import Partition
from compactor.registry.items import (
    OPEN_STATES,
    Batch,
    Head,
    Item,
    ItemState,
    Mark,
    Removal,
    in_name_order,
    in_place_of,
    name_bytes,
    supersedes,
    withdraws,
)
from compactor.registry.ports import Registered, StreamIdentity, Withdrawn
from compactor.stores.services import Thing, answers_of, service_client
from compactor.stores.translate import refusal_of

SHARDS = 8
INDEX = "pending"
#: Events come again for up to 14 days, from a queue and its dead letters.
KEPT_SECONDS = 30 * 86_400
_AT_ONCE = 16
_MOST_IN_TRANSACTION = 100
_INDEXED_BYTES = 900
_TRIES = 10
_LONG = "long"
_REFUSED = "ConditionalCheckFailedException"

Attributes = Mapping[str, Mapping[str, str]]
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class DynamoRegistry:
    """Implements :class:`compactor.registry.ports.Registry`; thread safe.

    Args:
        table: its name.
        client: of DynamoDB.
        pause: waits up to so many seconds before a transaction is tried again.
    """

    def __init__(
        self,
        table: str,
        client: Any = None,
        pause: Callable[[float], None] = lambda longest: time.sleep(random.uniform(0, longest)),  # noqa: S311 - jitter keeps no secret
    ) -> None:
        self._table = table
        self._client = client or service_client("dynamodb", connections=2 * _AT_ONCE)
        self._pause = pause

    def claim(self, stream: StreamIdentity, now: float) -> str:
        """Make sure that a stream is this one, which the first caller says."""
        wanted = {
            "source": stream.source,
            "destination": stream.destination,
            "state": stream.state,
            "scheme": stream.scheme,
        }
        key = {"pk": stream.name, "sk": "stream"}
        found = self._get(key)
        if found is None:
            new = {**key, **wanted, "born": f"{int(now * 1000):x}"}
            if self._put(_texts(new), "attribute_not_exists(pk)") is None:
                return new["born"]
            found = self._get(key) or {}
        for name, value in wanted.items():
            there = _text(found, name)
            if there != value:
                accepted = f"a stream of {name} {value}; this one is of {there}"
                raise InvalidInput("registry", f"{self._table}/{stream.name}", accepted)
        return _text(found, "born")

    def register(self, stream: str, items: Sequence[Item]) -> Registered:
        """Remember each item where it supersedes what is remembered of its key."""
        done = _each(items, lambda one: self._register(stream, one))
        new = [one for one, outcome in done if outcome is True]
        failed = [(one, outcome) for one, outcome in done if isinstance(outcome, Exception)]
        return Registered(new, len(done) - len(new) - len(failed), failed)

    def _register(self, stream: str, item: Item) -> bool:
        key = _item_key(stream, item.partition, item.name)
        if item.sequencer:
            condition = "attribute_not_exists(pk) OR sequencer < :sequencer"
            values: Attributes = {":sequencer": {"S": item.sequencer}}
            return self._put(_attributes(key, item), condition, values) is None
        condition, values, new = "attribute_not_exists(pk)", {}, item
        for _ in range(_TRIES):
            before = self._put(_attributes(key, new), condition, values)
            if before is None:
                return True
            old = _item(before, item.partition)
            if not supersedes(item, old):
                return False
            # What LIST found takes the place of just that.
            new = in_place_of(item, old)
            condition = "registered = :registered AND sequencer = :sequencer"
            values = {":registered": before["registered"], ":sequencer": {"S": old.sequencer}}
        raise TransientStoreError(f"{self._table}: {key['pk']}{key['sk']} kept changing")

    def withdraw(self, stream: str, removals: Sequence[Removal]) -> Withdrawn:
        """Forget that an object is pending, where the removal is the latest of its key."""
        done = _each(removals, lambda one: self._withdraw(stream, one))
        failed = [(one, outcome) for one, outcome in done if isinstance(outcome, Exception)]
        return Withdrawn(sum(outcome is True for _, outcome in done), failed)

    def _withdraw(self, stream: str, removal: Removal) -> bool:
        key = _item_key(stream, removal.partition, removal.name)
        for _ in range(_TRIES):
            found = self._get(key)
            old = None if found is None else _item(found, removal.partition)
            if not withdraws(removal, old):
                return False
            condition = "attribute_not_exists(pk)"
            values: dict[str, Any] = {
                ":state": {"S": ItemState.WITHDRAWN.value},
                ":time": _number(removal.time),
                ":new": {"S": removal.sequencer or (old.sequencer if old else "")},
                ":empty": {"S": ""},
                ":zero": _number(0),
                ":expires": _number(int(removal.time + KEPT_SECONDS)),
            }
            if old is not None and found is not None:
                condition = "registered = :registered AND sequencer = :old"
                values |= {":registered": found["registered"], ":old": {"S": old.sequencer}}
            update = (
                "SET #state = :state, #time = :time, sequencer = :new, expires_at = :expires,"
                " etag = if_not_exists(etag, :empty), #size = if_not_exists(#size, :zero),"
                " registered = if_not_exists(registered, :zero) REMOVE #pending"
            )
            if self._update(key, update, condition, values) is not None:
                return old is not None and old.state in OPEN_STATES
        raise TransientStoreError(f"{self._table}: {key['pk']}{key['sk']} kept changing")

    def touch(self, stream: str, path: str, newest: float) -> None:
        """Note that a partition may have something pending."""
        key = _head_key(stream, path)
        values = {":one": _number(1), ":sk": {"S": key["sk"]}}
        update = "ADD touched :one SET #pending = :sk{} REMOVE expires_at"
        later = {**values, ":newest": _number(newest)}
        condition = "attribute_not_exists(newest) OR newest < :newest"
        if self._update(key, update.format(", newest = :newest"), condition, later) is None:
            self._update(key, update.format(""), "", values)

    def heads(self, stream: str) -> Iterator[Head]:
        """The partitions that may have something pending; consistently read."""
        for shard in range(SHARDS):
            for one in self._query(f"{stream}/heads/{shard}"):
                yield _head(one)

    def head(self, stream: str, path: str) -> Head | None:
        """That of one partition, whether or not it may have something pending."""
        found = self._get(_head_key(stream, path))
        return None if found is None else _head(found)

    def rest(self, stream: str, head: Head, now: float) -> bool:
        """Note that nothing of a partition is pending; False where it was touched meanwhile."""
        values = {":touched": _number(head.touched), ":expires": _number(int(now + KEPT_SECONDS))}
        update = "SET expires_at = :expires REMOVE #pending"
        key = _head_key(stream, head.path)
        return self._update(key, update, "touched = :touched", values) is not None

    def pending(self, stream: str, partition: Partition, after: str = "") -> Iterator[Item]:
        """What is pending or left, consistently read, in UTF-8 order of names."""
        first = after.encode("utf-8", "surrogatepass")[:_INDEXED_BYTES].decode("utf-8", "ignore")
        shards = [
            (
                _item(one, partition)
                for one in self._query(f"{stream}/{shard}/{partition.path}", f"/{first}")
            )
            for shard in range(SHARDS)
        ]
        found = in_name_order([*shards, self._long_ones(stream, partition)])
        behind = after.encode("utf-8", "surrogatepass")
        return (one for one in found if not after or name_bytes(one) > behind)

    def _long_ones(self, stream: str, partition: Partition) -> Iterator[Item]:
        """Those that the table has in no order; they are few."""
        found = self._query(f"{stream}/{_LONG}/{partition.path}")
        yield from sorted((_item(one, partition) for one in found), key=name_bytes)

    def mark(self, stream: str, marks: Iterable[Mark], now: float) -> int:
        """Note what became of items, by transactions; returns of how many."""
        done = 0
        every = iter(marks)
        while chunk := list(islice(every, _MOST_IN_TRANSACTION)):
            done += self._mark(stream, chunk, now)
        return done

    def _mark(self, stream: str, marks: list[Mark], now: float) -> int:
        for tries in range(_TRIES):
            if not marks:
                return 0
            updates = [{"Update": self._marking(stream, one, now)} for one in marks]
            try:
                with self._answers("mark"):
                    self._transact(updates)
                return len(marks)
            except _Cancelled as error:
                reasons = error.reasons
            # What is not what it was any more belongs to the next run.
            marks = [one for one, why in zip(marks, reasons, strict=True) if why != _UNMET]
            if any(why not in (_UNMET, "None") for why in reasons):
                self._pause(0.05 * 2**tries)
        raise TransientStoreError(f"{self._table}: others changed the same items {_TRIES} times")

    def _transact(self, updates: list[dict[str, Any]]) -> None:
        try:
            self._client.transact_write_items(TransactItems=updates)
        except ClientError as error:
            if refusal_of(error).code != "TransactionCanceledException":
                raise
            told = error.response.get("CancellationReasons") or []
            if len(told) != len(updates):
                raise
            raise _Cancelled([str(one.get("Code") or "None") for one in told]) from None

    def _marking(self, stream: str, mark: Mark, now: float) -> dict[str, Any]:
        item = mark.item
        values = {
            ":state": {"S": mark.state.value},
            ":etag": {"S": item.etag},
            ":sequencer": {"S": item.sequencer},
            ":registered": _number(item.registered),
        }
        if mark.state in OPEN_STATES:
            update = "SET #state = :state, #reason = :reason"
            values[":reason"] = {"S": mark.reason}
        else:
            update = "SET #state = :state, #commit = :commit, expires_at = :expires REMOVE #pending"
            values[":commit"] = {"S": mark.commit}
            values[":expires"] = _number(int(now + KEPT_SECONDS))
        condition = "etag = :etag AND sequencer = :sequencer AND registered = :registered"
        condition += " AND attribute_exists(#pending)"
        key = _item_key(stream, item.partition, item.name)
        return {
            "TableName": self._table,
            "Key": _texts(key),
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ExpressionAttributeNames": _names(update + condition),
        }

    def batch(self, stream: str) -> Batch:
        """How far the executions of a stream are."""
        found = self._get({"pk": stream, "sk": "batch"})
        return Batch() if found is None else _batch(found)

    def arrived(self, stream: str, objects: int, size: int) -> Batch:
        """Count what was registered; a hint."""
        values = {":objects": _number(objects), ":bytes": _number(size)}
        update = "ADD #objects :objects, #bytes :bytes"
        found = self._update({"pk": stream, "sk": "batch"}, update, "", values)
        return _batch(found or {})

    def may_look(self, stream: str, now: float, pause_seconds: float) -> bool:
        """Take the right to see what is due: True for one caller within so many seconds."""
        values = {":now": _number(now), ":before": _number(now - pause_seconds)}
        condition = "attribute_not_exists(looked) OR looked <= :before"
        key = {"pk": stream, "sk": "batch"}
        return self._update(key, "SET looked = :now", condition, values) is not None

    def looked(self, stream: str, number: int, objects: int, size: int) -> None:
        """Set the hints of a batch to what was seen."""
        values = {":objects": _number(objects), ":bytes": _number(size)}
        self._of_batch(stream, number, "SET #objects = :objects, #bytes = :bytes", values)

    def advance(self, stream: str, number: int, cut: float, execution: str) -> bool:
        """Go on to the batch behind this one; False where somebody else did."""
        update = (
            "SET #number = :next, #cut = :cut, #execution = :execution, #objects = :zero,"
            " #bytes = :zero"
        )
        values = {
            ":next": _number(number + 1),
            ":cut": _number(cut),
            ":execution": {"S": execution},
            ":zero": _number(0),
        }
        return self._of_batch(stream, number, update, values)

    def _of_batch(self, stream: str, number: int, update: str, values: Attributes) -> bool:
        condition = "#number = :number"
        if number == 1:
            condition += " OR attribute_not_exists(#number)"
        values = {**values, ":number": _number(number)}
        return self._update({"pk": stream, "sk": "batch"}, update, condition, values) is not None

    def _get(self, key: Mapping[str, str]) -> Attributes | None:
        with self._answers("get"):
            found = self._client.get_item(
                TableName=self._table, Key=_texts(key), ConsistentRead=True
            )
        item: Attributes | None = found.get("Item")
        return item

    def _put(
        self, item: Attributes, condition: str, values: Attributes | None = None
    ) -> Attributes | None:
        """Put an item; what is there instead where the condition is not met."""
        more = {"ExpressionAttributeValues": values} if values else {}
        with self._answers("put"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **more,
                )
            except ClientError as error:
                if refusal_of(error).code != _REFUSED:
                    raise
                there: Attributes | None = error.response.get("Item")
            else:
                return None
        # Not every server tells it with the refusal.
        return there or self._get({"pk": item["pk"]["S"], "sk": item["sk"]["S"]}) or item

    def _update(
        self, key: Mapping[str, str], update: str, condition: str, values: Attributes
    ) -> Attributes | None:
        """Update an item, and what it is then; None where the condition is not met."""
        more: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
        names = _names(update + condition)
        if names:
            more["ExpressionAttributeNames"] = names
        with self._answers("update"):
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=_texts(key),
                    UpdateExpression=update,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    **more,
                )
            except ClientError as error:
                if refusal_of(error).code != _REFUSED:
                    raise
                return None
        found: Attributes = answer["Attributes"]
        return found

    def _query(self, pk: str, after: str = "") -> Iterator[Attributes]:
        """What is pending with this key, behind a sort key."""
        condition, values = "pk = :pk", {":pk": {"S": pk}}
        if after:
            condition += f" AND {INDEX} >= :after"
            values[":after"] = {"S": after}
        following: dict[str, Any] = {}
        while True:
            with self._answers("query"):
                found = self._client.query(
                    TableName=self._table,
                    IndexName=INDEX,
                    KeyConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ConsistentRead=True,
                    **following,
                )
            yield from found["Items"]
            if not found.get("LastEvaluatedKey"):
                return
            following = {"ExclusiveStartKey": found["LastEvaluatedKey"]}

    def _answers(self, what: str) -> AbstractContextManager[None]:
        accepted = "a DynamoDB table with keys pk and sk, and the local index pending"
        thing = Thing("registry", self._table, accepted)
        return answers_of(f"{what} in {self._table}", thing)


_UNMET = "ConditionalCheckFailed"
# In expressions these words are DynamoDB's own.
_RESERVED = (
    "bytes",
    "commit",
    "cut",
    "execution",
    "number",
    "objects",
    "pending",
    "reason",
    "size",
    "state",
    "time",
)


class _Cancelled(Exception):
    """A transaction did nothing; why, for each of its items."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = reasons


def create_table(client: Any, table: str) -> None:
    """Make a table as it has to be: for tests, and for one machine."""
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_keys("pk", "sk"),
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", INDEX)
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": _keys("pk", INDEX),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def _keys(first: str, second: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": first, "KeyType": "HASH"},
        {"AttributeName": second, "KeyType": "RANGE"},
    ]


def _each(
    inputs: Sequence[_In], work: Callable[[_In], _Out]
) -> list[tuple[_In, _Out | TransientStoreError]]:
    """The outcome of each, from several threads; what may be asked again is an outcome, too."""

    def one(given: _In) -> _Out | TransientStoreError:
        try:
            return work(given)
        except TransientStoreError as error:
            return error

    if len(inputs) <= 1:
        return [(given, one(given)) for given in inputs]
    with ThreadPoolExecutor(min(_AT_ONCE, len(inputs)), thread_name_prefix="registry") as pool:
        return list(zip(inputs, pool.map(one, inputs), strict=True))


def _item_key(stream: str, partition: Partition, name: str) -> dict[str, str]:
    raw = name.encode("utf-8", "surrogatepass")
    if len(raw) > _INDEXED_BYTES:
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        return {"pk": f"{stream}/{_LONG}/{partition.path}", "sk": f"/{digest}"}
    return {"pk": f"{stream}/{zlib.crc32(raw) % SHARDS}/{partition.path}", "sk": f"/{name}"}


def _head_key(stream: str, path: str) -> dict[str, str]:
    shard = zlib.crc32(path.encode("utf-8", "surrogatepass")) % SHARDS
    return {"pk": f"{stream}/heads/{shard}", "sk": f"/{path}"}


def _attributes(key: Mapping[str, str], item: Item) -> Attributes:
    found = {
        **_texts(key),
        "state": {"S": item.state.value},
        "etag": {"S": item.etag},
        "size": _number(item.size),
        "time": _number(item.time),
        "sequencer": {"S": item.sequencer},
        "registered": _number(item.registered),
    }
    if item.state in OPEN_STATES:
        found[INDEX] = {"S": key["sk"]}
    for name, value in (("version", item.version), ("reason", item.reason)):
        if value:
            found[name] = {"S": value}
    if f"/{item.name}" != key["sk"]:
        found["name"] = {"S": item.name}
    return found


def _item(found: Attributes, partition: Partition) -> Item:
    return Item(
        partition,
        _text(found, "name") or _text(found, "sk")[1:],
        _text(found, "etag"),
        int(_value(found, "size")),
        _value(found, "time"),
        _text(found, "sequencer"),
        _value(found, "registered"),
        _text(found, "version"),
        ItemState(_text(found, "state")),
        _text(found, "reason"),
    )


def _head(found: Attributes) -> Head:
    return Head(_text(found, "sk")[1:], int(_value(found, "touched")), _value(found, "newest"))


def _batch(found: Attributes) -> Batch:
    return Batch(
        int(_value(found, "number")) or 1,
        _value(found, "cut"),
        _text(found, "execution"),
        int(_value(found, "objects")),
        int(_value(found, "bytes")),
        _value(found, "looked"),
    )


def _names(expression: str) -> dict[str, str]:
    return {f"#{word}": word for word in _RESERVED if f"#{word}" in expression}


def _texts(values: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    return {name: {"S": value} for name, value in values.items()}


def _number(value: float) -> dict[str, str]:
    return {"N": repr(value)}


def _text(found: Attributes, name: str) -> str:
    return found.get(name, {}).get("S", "")


def _value(found: Attributes, name: str) -> float:
    return float(found.get(name, {}).get("N", 0))
