"""The registry of pending objects on DynamoDB; see :mod:`compactor.aws.registry_rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from compactor.aws.registry_rows import (
    INDEXED_BYTES,
    LONG,
    SHARDS,
    Attributes,
    attributes_of,
    batch_of,
    head_key,
    head_of,
    item_key,
    item_of,
    names_in,
    numeric,
    text_of,
    texts,
)
from compactor.aws.registry_table import CONCURRENT, MOST_INSERTS, Cancelled, DynamoTable
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
from compactor.registry.registry_ports import Registered, StreamIdentity, Withdrawn

#: How long done items are kept. A queue and its dead letters can repeat events for 14 days.
KEPT_SECONDS = 30 * 86_400
_MOST_IN_TRANSACTION = 100
_WORTH_INSERTING = 8
_TRIES = 10

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class DynamoRegistry(DynamoTable):
    """Implements :class:`compactor.registry.registry_ports.Registry`; thread safe.

    Args:
        table: name of the table.
        client: DynamoDB client.
        pause: waits up to the given seconds before a transaction is retried.
        inserts: the service supports PartiQL.
    """

    def claim(self, stream: StreamIdentity, now: float) -> str:
        """Claim a stream's name, or check that it is claimed by this stream.

        Returns:
            The time of the first claim, in milliseconds, hexadecimal: unique among streams that
            ever had this name.

        Raises:
            InvalidInput: another stream has this name.
        """
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
            if self._put(texts(new), "attribute_not_exists(pk)") is None:
                return new["born"]
            found = self._get(key) or {}
        for name, value in wanted.items():
            there = text_of(found, name)
            if there != value:
                accepted = f"a stream of {name} {value}; this one is of {there}"
                raise InvalidInput("listing", f"events:{self._table}/{stream.name}", accepted)
        return text_of(found, "born")

    def register(self, stream: str, items: Sequence[Item]) -> Registered:
        """Store each item that supersedes the stored item of its key.

        If there are many, they are first inserted in batches as if all were new, which takes an
        eighth of the CPU time. Items refused there are put one by one, each on its condition.
        """
        inserted: set[int] = set()
        if len(items) >= _WORTH_INSERTING:
            chunks = [
                range(n, min(n + MOST_INSERTS, len(items)))
                for n in range(0, len(items), MOST_INSERTS)
            ]
            for _, numbers in _each(chunks, lambda chunk: self._insert_new(stream, items, chunk)):
                inserted |= set(numbers) if isinstance(numbers, list) else set()
        others = [one for number, one in enumerate(items) if number not in inserted]
        done = _each(others, lambda one: self._register(stream, one))
        new = [items[number] for number in sorted(inserted)]
        new += [one for one, outcome in done if outcome is True]
        failed = [(one, outcome) for one, outcome in done if isinstance(outcome, Exception)]
        return Registered(new, len(items) - len(new) - len(failed), failed)

    def _insert_new(self, stream: str, items: Sequence[Item], chunk: range) -> list[int]:
        """Insert a chunk of items; return the numbers of those that were new."""
        rows = [
            attributes_of(item_key(stream, items[n].partition, items[n].name), items[n])
            for n in chunk
        ]
        return [n for n, done in zip(chunk, self._insert(rows), strict=True) if done]

    def _register(self, stream: str, item: Item) -> bool:
        key = item_key(stream, item.partition, item.name)
        if item.sequencer:
            condition = "attribute_not_exists(pk) OR sequencer < :sequencer"
            values: Attributes = {":sequencer": {"S": item.sequencer}}
            return self._put(attributes_of(key, item), condition, values) is None
        condition, values, new = "attribute_not_exists(pk)", {}, item
        for _ in range(_TRIES):
            before = self._put(attributes_of(key, new), condition, values)
            if before is None:
                return True
            old = item_of(before, item.partition)
            if not supersedes(item, old):
                return False
            # An item from LIST replaces just the item that it was compared with.
            new = in_place_of(item, old)
            condition = "registered = :registered AND sequencer = :sequencer"
            values = {":registered": before["registered"], ":sequencer": {"S": old.sequencer}}
        raise TransientStoreError(f"{self._table}: {key['pk']}{key['sk']} kept changing")

    def withdraw(self, stream: str, removals: Sequence[Removal]) -> Withdrawn:
        """Mark objects as no longer pending if the removal is the latest event of the key."""
        done = _each(removals, lambda one: self._withdraw(stream, one))
        failed = [(one, outcome) for one, outcome in done if isinstance(outcome, Exception)]
        return Withdrawn(sum(outcome is True for _, outcome in done), failed)

    def _withdraw(self, stream: str, removal: Removal) -> bool:
        key = item_key(stream, removal.partition, removal.name)
        for _ in range(_TRIES):
            found = self._get(key)
            old = None if found is None else item_of(found, removal.partition)
            if not withdraws(removal, old):
                return False
            condition = "attribute_not_exists(pk)"
            values: dict[str, Any] = {
                ":state": {"S": ItemState.WITHDRAWN.value},
                ":time": numeric(removal.time),
                ":new": {"S": removal.sequencer or (old.sequencer if old else "")},
                ":empty": {"S": ""},
                ":zero": numeric(0),
                ":expires": numeric(int(removal.time + KEPT_SECONDS)),
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
        """Record that a partition may have pending objects."""
        key = head_key(stream, path)
        values = {":one": numeric(1), ":sk": {"S": key["sk"]}}
        update = "ADD touched :one SET #pending = :sk{} REMOVE expires_at"
        later = {**values, ":newest": numeric(newest)}
        condition = "attribute_not_exists(newest) OR newest < :newest"
        if self._update(key, update.format(", newest = :newest"), condition, later) is None:
            self._update(key, update.format(""), "", values)

    def heads(self, stream: str) -> Iterator[Head]:
        """Yield the partitions that may have pending objects, by consistent reads."""
        for shard in range(SHARDS):
            for one in self._query(f"{stream}/heads/{shard}"):
                yield head_of(one)

    def head(self, stream: str, path: str) -> Head | None:
        """Return the head of a partition, whether or not it may have pending objects."""
        found = self._get(head_key(stream, path))
        return None if found is None else head_of(found)

    def rest(self, stream: str, head: Head, now: float) -> bool:
        """Record that a partition has nothing pending; return False if it was touched meanwhile."""
        values = {":touched": numeric(head.touched), ":expires": numeric(int(now + KEPT_SECONDS))}
        update = "SET expires_at = :expires REMOVE #pending"
        key = head_key(stream, head.path)
        return self._update(key, update, "touched = :touched", values) is not None

    def pending(self, stream: str, partition: Partition, after: str = "") -> Iterator[Item]:
        """Yield items that are pending or left, by consistent reads, in UTF-8 order of names."""
        first = after.encode("utf-8", "surrogatepass")[:INDEXED_BYTES].decode("utf-8", "ignore")
        shards = [
            (
                item_of(one, partition)
                for one in self._query(f"{stream}/{shard}/{partition.path}", f"/{first}")
            )
            for shard in range(SHARDS)
        ]
        found = in_name_order([*shards, self._long_ones(stream, partition)])
        start = after.encode("utf-8", "surrogatepass")
        return (one for one in found if not after or name_bytes(one) > start)

    def _long_ones(self, stream: str, partition: Partition) -> Iterator[Item]:
        """Yield the items with names too long for the sort key, in order; they are few."""
        found = self._query(f"{stream}/{LONG}/{partition.path}")
        yield from sorted((item_of(one, partition) for one in found), key=name_bytes)

    def mark(self, stream: str, marks: Iterable[Mark], now: float) -> int:
        """Record what became of items, by transactions; return the number of marked items."""
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
            except Cancelled as error:
                reasons = error.reasons
            # Items that changed meanwhile are left to the next run.
            marks = [one for one, why in zip(marks, reasons, strict=True) if why != _UNMET]
            if any(why not in (_UNMET, "None") for why in reasons):
                self._pause(0.05 * 2**tries)
        raise TransientStoreError(f"{self._table}: others changed the same items {_TRIES} times")

    def _marking(self, stream: str, mark: Mark, now: float) -> dict[str, Any]:
        item = mark.item
        values = {
            ":state": {"S": mark.state.value},
            ":etag": {"S": item.etag},
            ":sequencer": {"S": item.sequencer},
            ":registered": numeric(item.registered),
        }
        if mark.state in OPEN_STATES:
            update = "SET #state = :state, #reason = :reason"
            values[":reason"] = {"S": mark.reason}
        else:
            update = "SET #state = :state, expires_at = :expires REMOVE #pending"
            values[":expires"] = numeric(int(now + KEPT_SECONDS))
        condition = "etag = :etag AND sequencer = :sequencer AND registered = :registered"
        condition += " AND attribute_exists(#pending)"
        key = item_key(stream, item.partition, item.name)
        return {
            "TableName": self._table,
            "Key": texts(key),
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ExpressionAttributeNames": names_in(update + condition),
        }

    def batch(self, stream: str) -> Batch:
        """Return the current batch of a stream."""
        found = self._get({"pk": stream, "sk": "batch"})
        return Batch() if found is None else batch_of(found)

    def advance(self, stream: str, number: int, cut: float, execution: str) -> bool:
        """Advance to the next batch; return False if another writer did so first."""
        update = "SET #number = :next, #cut = :cut, #execution = :execution"
        condition = "attribute_not_exists(#number)" if number == 1 else "#number = :number"
        values = {
            ":next": numeric(number + 1),
            ":cut": numeric(cut),
            ":execution": {"S": execution},
        }
        if number > 1:
            values[":number"] = numeric(number)
        return self._update({"pk": stream, "sk": "batch"}, update, condition, values) is not None


_UNMET = "ConditionalCheckFailed"


def _each(
    inputs: Sequence[_In], work: Callable[[_In], _Out]
) -> list[tuple[_In, _Out | TransientStoreError]]:
    """Return each input with its result or TransientStoreError; runs in several threads."""

    def one(given: _In) -> _Out | TransientStoreError:
        try:
            return work(given)
        except TransientStoreError as error:
            return error

    if len(inputs) <= 1:
        return [(given, one(given)) for given in inputs]
    with ThreadPoolExecutor(min(CONCURRENT, len(inputs)), thread_name_prefix="registry") as pool:
        return list(zip(inputs, pool.map(one, inputs), strict=True))
