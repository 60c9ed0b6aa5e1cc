"""The rows of the registry's table: their keys and attributes.

    pk                            sk          what
    STREAM                        stream      identity of the stream
    STREAM                        batch       the current batch of executions
    STREAM/heads/SHARD            /PATH       a partition
    STREAM/SHARD/PATH             /NAME       an object, by its key below the partition
    STREAM/long/PATH              /DIGEST     an object whose name is too long for a sort key

The local index ``pending`` has only the rows of pending objects and partitions. So the cost of a
query depends on what there is to do, not on what was done before. Because the index is local, it
can be read consistently. A shard takes 1,000 writes per second, including the index.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

from compactor.model import Partition
from compactor.registry.items import OPEN_STATES, Batch, Head, Item, ItemState

SHARDS = 8
INDEX = "pending"
#: Longest name in a sort key, in bytes of UTF-8. Longer ones are replaced by a digest.
INDEXED_BYTES = 900
LONG = "long"
Attributes = Mapping[str, Mapping[str, str]]
# Attribute names that are reserved words in DynamoDB expressions.
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


def create_table(client: Any, table: str) -> None:
    """Create the registry's table, for tests and local use."""
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


def item_key(stream: str, partition: Partition, name: str) -> dict[str, str]:
    """Return the key of an object's row."""
    raw = name.encode("utf-8", "surrogatepass")
    if len(raw) > INDEXED_BYTES:
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        return {"pk": f"{stream}/{LONG}/{partition.path}", "sk": f"/{digest}"}
    return {"pk": f"{stream}/{zlib.crc32(raw) % SHARDS}/{partition.path}", "sk": f"/{name}"}


def head_key(stream: str, path: str) -> dict[str, str]:
    """Return the key of a partition's row."""
    shard = zlib.crc32(path.encode("utf-8", "surrogatepass")) % SHARDS
    return {"pk": f"{stream}/heads/{shard}", "sk": f"/{path}"}


def attributes_of(key: Mapping[str, str], item: Item) -> Attributes:
    """Return an item as a row of the table."""
    found = {
        **texts(key),
        "state": {"S": item.state.value},
        "etag": {"S": item.etag},
        "size": numeric(item.size),
        "time": numeric(item.time),
        "sequencer": {"S": item.sequencer},
        "registered": numeric(item.registered),
    }
    if item.state in OPEN_STATES:
        found[INDEX] = {"S": key["sk"]}
    for name, value in (("version", item.version), ("reason", item.reason)):
        if value:
            found[name] = {"S": value}
    if f"/{item.name}" != key["sk"]:
        found["name"] = {"S": item.name}
    return found


def item_of(found: Attributes, partition: Partition) -> Item:
    """Return the item of a row."""
    return Item(
        partition,
        text_of(found, "name") or text_of(found, "sk")[1:],
        text_of(found, "etag"),
        int(value_of(found, "size")),
        value_of(found, "time"),
        text_of(found, "sequencer"),
        value_of(found, "registered"),
        text_of(found, "version"),
        ItemState(text_of(found, "state")),
        text_of(found, "reason"),
    )


def head_of(found: Attributes) -> Head:
    """Return the head of a partition's row."""
    return Head(
        text_of(found, "sk")[1:], int(value_of(found, "touched")), value_of(found, "newest")
    )


def batch_of(found: Attributes) -> Batch:
    """Return the batch of a row."""
    number = int(value_of(found, "number"))
    return Batch(number, value_of(found, "cut"), text_of(found, "execution"))


def names_in(expression: str) -> dict[str, str]:
    """Return the ExpressionAttributeNames for the reserved words in an expression."""
    return {f"#{word}": word for word in _RESERVED if f"#{word}" in expression}


def texts(values: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Return strings as DynamoDB attribute values."""
    return {name: {"S": value} for name, value in values.items()}


def numeric(value: float) -> dict[str, str]:
    """Return a number as a DynamoDB attribute value."""
    return {"N": repr(value)}


def text_of(found: Attributes, name: str) -> str:
    """Return a string attribute; empty if there is no such attribute."""
    return found.get(name, {}).get("S", "")


def value_of(found: Attributes, name: str) -> float:
    """Return a numeric attribute; 0.0 if there is no such attribute."""
    return float(found.get(name, {}).get("N", 0))
