"""Changes of people, and the table that runs merge them into: of Iceberg, or of Delta."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from compactor_local.embedded import EmbeddedS3, SeedObject

Row = Mapping[str, Any]


@dataclass(frozen=True)
class People:
    """A table of people, looked at by a library that has not written it.

    Attributes:
        given: what a run is started with.
        read: the rows.
        take_back: the rows to what they were before the last merge.
    """

    given: dict[str, Any]
    read: Callable[[], list[Row]]
    take_back: Callable[[], object]


def change(key: int, at: int, name: str, op: str = "U") -> Row:
    return {"id": key, "at": at, "op": op, "name": name}


def arrive(s3: EmbeddedS3, source: str, name: str, records: tuple[Row, ...]) -> None:
    """Put changes into a source, where they are long settled."""
    body = b"".join(json.dumps(one).encode() + b"\n" for one in records)
    s3.seed(source, [SeedObject(f"cdc/{name}.json", body, time.time() - 9 * 86_400)])


def people_of(kind: str, s3: EmbeddedS3, name: str, directory: Path) -> tuple[str, People]:
    """A source that is made for it, and the table of what arrives there.

    Args:
        kind: ``iceberg`` or ``delta``.
        s3: has both.
        name: begins the names of the buckets.
        directory: where Iceberg's catalog lies.
    """
    source, bucket = f"{name}-source", f"{name}-lake"
    for one in (source, bucket):
        s3.create_bucket(one)
    given = {
        "s3_source_uri": f"s3://{source}/cdc/",
        "depth": 1,
        "upsert_key": ["id"],
        "order_by": ["at"],
        "delete_when": {"op": ["D"]},
        "parquet_schema": "id BIGINT, at BIGINT, op STRING, name STRING",
    }
    make = _in_iceberg if kind == "iceberg" else _in_delta
    return source, make(given, s3, bucket, directory)


def _in_iceberg(given: dict[str, Any], s3: EmbeddedS3, bucket: str, directory: Path) -> People:
    catalog = f"sqlite:///{directory}/people.db"
    known = {"type": "sql", "uri": catalog, "s3.endpoint": s3.endpoint_url}
    own = {"s3_destination_uri": f"s3://{bucket}/changes/", "table": f"sql:{catalog}#lake.people"}

    def read() -> list[Row]:
        found = load_catalog("compactor", **known).load_table("lake.people").scan().to_arrow()
        return list(found.to_pylist())

    def take_back() -> object:
        found = load_catalog("compactor", **known).load_table("lake.people")
        current = found.current_snapshot()
        assert current is not None
        assert current.parent_snapshot_id is not None
        with found.manage_snapshots() as snapshots:
            return snapshots.rollback_to_snapshot(current.parent_snapshot_id)

    return People({**given, **own}, read, take_back)


def _in_delta(given: dict[str, Any], s3: EmbeddedS3, bucket: str, _: Path) -> People:
    uri = f"s3://{bucket}/people/"
    options = {"AWS_ENDPOINT_URL": s3.endpoint_url, "AWS_ALLOW_HTTP": "true"}
    own = {"s3_destination_uri": f"{uri}_changes/", "table": f"delta:{uri}"}

    def read() -> list[Row]:
        found = DeltaTable(uri, storage_options=options)
        return list(found.to_pyarrow_table().to_pylist())

    def take_back() -> object:
        found = DeltaTable(uri, storage_options=options)
        return found.restore(found.version() - 1)

    return People({**given, **own}, read, take_back)
