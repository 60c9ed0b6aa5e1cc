"""Merges all committed outputs into a table with a key, at the end of a job."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock
from compactor.failures import first_line
from compactor.ports import ObjectStore, StoreTraits
from compactor.s3.store import S3Store
from compactor.settings.tables import DELTA
from compactor.sinks.table_catalog import TableFile
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.sinks.table_receipts import TableReceipt, read_receipt
from compactor.sinks.upserts import key_of
from compactor_spark.console import Console
from compactor_spark.log_store import one_driver_only
from compactor_spark.places import LoadedRun
from compactor_spark.upsert.access import STAGED, access_of
from compactor_spark.upsert.opening import OpenedTable, open_table
from compactor_spark.upsert.tables import SparkUpserts

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# Most outputs in one merge; with staged access they must fit on the disk.
_COMMIT_OUTPUTS, _ENTRY_OUTPUTS = 200, 100
_CONCURRENT = 8


@dataclass(slots=True)
class Merging:
    """Brings a run's table up to date; created before anything is compacted, used afterwards.

    Attributes:
        loaded: the run.
        client: serves the driver's own requests.
        console: shows progress.
        traits: store features that are safe to rely on.
        table: the table, opened by Spark.
        access: how Spark reads outputs, see :func:`compactor_spark.upsert.access.access`.
        receipt: the result of the merge; None before it.
    """

    loaded: LoadedRun
    client: S3Client
    console: Console
    traits: StoreTraits
    table: OpenedTable
    access: str
    receipt: TableReceipt | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        session: SparkSession,
        loaded: LoadedRun,
        client: S3Client,
        console: Console,
        traits: StoreTraits,
    ) -> Self | None:
        """Return an instance for the table of a run; None if Spark does not write the table.

        Raises:
            InvalidInput: Spark lacks the jars or the extension for the table.
        """
        if not loaded.settings.upsert_key:
            return None
        table = open_table(session, loaded.settings, client)
        address = loaded.settings.table_address
        if address is not None and address.kind == DELTA and (warning := one_driver_only(session)):
            console.say(warning)
        return cls(loaded, client, console, traits, table, access_of(session))

    def merge(self) -> None:
        """Merge all committed outputs; errors are recorded in the receipt."""
        settings, run_id = self.loaded.settings, self.loaded.run_id
        store = S3Store(self.client).with_traits(self.traits)
        key = key_of(settings)
        assert key is not None  # noqa: S101 - made for such tables alone
        address = settings.table or ""
        self.receipt = TableReceipt()
        with StagedOutputs(store, self.access) as outputs:
            catalog = SparkUpserts(self.table.engine, self.table.name, key, address, outputs.uris)
            work = Publishing(
                settings=settings,
                store=store,
                catalog=catalog,
                clock=SystemClock(),
                deadline=NoDeadline(),
                run_id=run_id,
                entry_outputs=_ENTRY_OUTPUTS,
                commit_outputs=_COMMIT_OUTPUTS,
                counts=catalog.counts,
            )
            self.console.say(f"merging into {address}")
            try:
                self.receipt = read_receipt(settings, run_id, store) or self.receipt
                record_publish(work, self.receipt)
            except Exception as error:
                # The compaction itself is unaffected, and the next run merges the rest.
                self.receipt.error = type(error).__name__
                self.receipt.cause = first_line(error)
        for line in self.receipt.causes or [self.receipt.line]:
            self.console.say(line)


class StagedOutputs:
    """Makes outputs readable for Spark: where they are, or copied to this machine's disk.

    Args:
        store: holds the outputs.
        access: ``staged`` to copy them to disk; otherwise the scheme that Spark reads.
    """

    def __init__(self, store: ObjectStore, access: str) -> None:
        self._store = store
        self._access = access
        self._root: Path | None = None
        self._staged: dict[TableFile, Path] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def uris(self, files: Sequence[TableFile]) -> Sequence[str]:
        """Return URIs of these outputs for Spark; earlier copies of other outputs are deleted."""
        if self._access != STAGED:
            return [f"{self._access}://{one.bucket}/{one.key}" for one in files]
        for one in self._staged.keys() - set(files):
            self._staged.pop(one).unlink()
        self._root = self._root or Path(tempfile.mkdtemp(prefix="compactor-merge-"))
        missing = [one for one in files if one not in self._staged]
        fetch = partial(self._fetch, self._root)
        with ThreadPoolExecutor(_CONCURRENT, thread_name_prefix="staged") as pool:
            self._staged.update(zip(missing, pool.map(fetch, missing), strict=True))
        return [self._staged[one].as_uri() for one in files]

    def _fetch(self, root: Path, one: TableFile) -> Path:
        path = root / one.key.rsplit("/", 1)[-1]
        with path.open("wb") as stream:
            for piece in self._store.open(one.bucket, one.key):
                stream.write(piece)
        return path
