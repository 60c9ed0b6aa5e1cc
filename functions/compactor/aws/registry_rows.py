"""The rows of the table of what is pending: their keys, and what they hold.

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
import zlib
from collections.abc import Mapping
from typing import Any

from compactor.model import Partition
from compactor.registry.items import OPEN_STATES, Batch, Head, Item, ItemState

SHARDS = 8
INDEX = "pending"
#: A name that is longer stands in no key; UTF-8.
INDEXED_BYTES = 900
LONG = "long"
Attributes = Mapping[str, Mapping[str, str]]
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


def item_key(stream: str, partition: Partition, name: str) -> dict[str, str]:
    """Where an object of this name is."""
    raw = name.encode("utf-8", "surrogatepass")
    if len(raw) > INDEXED_BYTES:
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
        return {"pk": f"{stream}/{LONG}/{partition.path}", "sk": f"/{digest}"}
    return {"pk": f"{stream}/{zlib.crc32(raw) % SHARDS}/{partition.path}", "sk": f"/{name}"}


def head_key(stream: str, path: str) -> dict[str, str]:
    """Where a partition is."""
    shard = zlib.crc32(path.encode("utf-8", "surrogatepass")) % SHARDS
    return {"pk": f"{stream}/heads/{shard}", "sk": f"/{path}"}


def attributes_of(key: Mapping[str, str], item: Item) -> Attributes:
    """An item as the table has it."""
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
    """The item again."""
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
    """The head of a partition."""
    return Head(
        text_of(found, "sk")[1:], int(value_of(found, "touched")), value_of(found, "newest")
    )


def batch_of(found: Attributes) -> Batch:
    """How far the executions of a stream are."""
    return Batch(
        int(value_of(found, "number")) or 1,
        value_of(found, "cut"),
        text_of(found, "execution"),
        int(value_of(found, "objects")),
        int(value_of(found, "bytes")),
        value_of(found, "looked"),
    )


def names_in(expression: str) -> dict[str, str]:
    """What stands in an expression for words that are DynamoDB's own."""
    return {f"#{word}": word for word in _RESERVED if f"#{word}" in expression}


def texts(values: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Texts, as DynamoDB takes them."""
    return {name: {"S": value} for name, value in values.items()}


def numeric(value: float) -> dict[str, str]:
    """A number, as DynamoDB takes it."""
    return {"N": repr(value)}


def text_of(found: Attributes, name: str) -> str:
    """A text; empty where there is none."""
    return found.get(name, {}).get("S", "")


def value_of(found: Attributes, name: str) -> float:
    """A number; 0.0 where there is none."""
    return float(found.get(name, {}).get("N", 0))
