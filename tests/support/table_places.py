"""Buckets with a table of the real libraries: in a local catalog, in Glue, or Delta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from compactor.catalogs.opening import open_catalog
from compactor.clock import NoDeadline, SystemClock
from compactor.log.identity import read_identity
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor.sinks.table_catalog import TableCatalog, TableFile, TableState
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.sinks.table_receipts import TableReceipt
from tests.support.aws_server import aws_server
from tests.support.examples import NOW
from tests.support.examples import settings as settings_of
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.parquet_outputs import commit_rows, parquet


@contextmanager
def lake_on_aws() -> Iterator[str]:
    """Yield the URL of an emulated AWS with the Glue database ``lake``, set in the environment."""
    with aws_server() as url, pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "testtest"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", url),
        ):
            patch.setenv(name, value)
        boto3.client("glue").create_database(DatabaseInput={"Name": "lake"})
        yield url


class Place:
    """A bucket with one table of a kind."""

    def __init__(self, kind: str, url: str, name: str, directory: Path) -> None:
        self.bucket = f"lake-{name}"
        self.store: ObjectStore
        if kind == "sql":
            self.store = memory = MemoryStore(ManualClock(NOW))
            memory.add_bucket(self.bucket)
        else:
            client = make_client(url)
            client.create_bucket(Bucket=self.bucket)
            self.store = S3Store(client)
        destination, table = {
            "sql": ("compacted/", f"sql:sqlite:///{directory}/catalog.db#lake.events"),
            "glue": ("compacted/", f"glue:lake.events_{name}"),
            "delta": ("events/_compacted/", f"delta:s3://{self.bucket}/events/"),
        }[kind]
        self.settings: Settings = settings_of(
            s3_destination_uri=f"s3://{self.bucket}/{destination}", table=table
        )
        self.kind = kind
        self._publishers = 0

    @property
    def catalog(self) -> TableCatalog:
        return open_catalog(self.settings, self.store)

    @property
    def log_id(self) -> str:
        found = read_identity(self.settings, self.store)
        assert found is not None
        return found.log_id

    def state(self) -> TableState:
        found = self.catalog.load(self.log_id)
        assert found is not None
        return found

    def commit(self, partition: Partition, **columns: Any) -> None:
        commit_rows(self.store, self.settings, partition, pa.table(columns))

    def publish(self, **given: Any) -> TableReceipt:
        self._publishers += 1
        return record_publish(
            replace(
                Publishing(
                    self.settings,
                    self.store,
                    self.catalog,
                    SystemClock(),
                    NoDeadline(),
                    f"publisher-{self._publishers}",
                    pause=lambda _: None,
                ),
                **given,
            )
        )

    def rows(self, column: str = "id") -> Counter[Any]:
        """Return the rows that another reader finds: pyiceberg's scan, or DuckDB by Delta's log."""
        if self.kind == "delta":
            handle: Any = self.state().handle
            found = pa.table(_query(handle))
        else:
            handle = self.state().handle
            found = handle.scan().to_arrow()
        return Counter(found.column(column).to_pylist())

    def rows_by_duckdb(self, directory: Path, column: str = "id") -> Counter[Any]:
        """Return the rows that DuckDB reads from the data files that the table's library lists."""
        import duckdb

        handle: Any = self.state().handle
        if self.kind == "delta":
            uris = handle.file_uris()
        else:
            uris = [one.file.file_path for one in handle.scan().plan_files()]
        names = []
        for number, uri in enumerate(uris):
            bucket, _, key = uri.removeprefix("s3://").partition("/")
            file = directory / f"{number}.parquet"
            file.write_bytes(bytes(self.store.get(bucket, key)))
            names.append(str(file))
        found = duckdb.read_parquet(names, union_by_name=True).project(column)
        return Counter(row[0] for row in found.fetchall())

    def put(self, name: str, table: pa.Table, **given: Any) -> TableFile:
        """Put a file that no log names."""
        body = parquet(table, **given)
        key = f"{self.settings.destination.prefix}{name}.parquet"
        self.store.put(self.bucket, key, body)
        return TableFile(self.bucket, key, len(body), table.num_rows)


def _query(handle: Any) -> Any:
    from deltalake import QueryBuilder

    return QueryBuilder().register("t", handle).execute("select * from t").read_all()
