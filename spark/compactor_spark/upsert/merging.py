"""The end of a job over a table with a key: all that is committed is merged into it."""

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
from compactor.conditions import StoreTraits
from compactor.ports import ObjectStore
from compactor.s3.store import S3Store
from compactor.settings.tables import DELTA
from compactor.sinks.table_catalog import TableFile
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.sinks.table_receipts import TableReceipt, read_receipt
from compactor.sinks.upserts import key_of
from compactor_spark.columnar.staging import STAGED, access_of
from compactor_spark.console import Console
from compactor_spark.log_store import one_driver_only
from compactor_spark.places import LoadedRun
from compactor_spark.rounds import first_line
from compactor_spark.upsert.opening import OpenedTable, open_table
from compactor_spark.upsert.tables import SparkUpserts

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# One merge reads so many outputs; where they pass through a disk, it has room for them.
_COMMIT_OUTPUTS, _ENTRY_OUTPUTS = 200, 100
_CONCURRENT = 8


@dataclass(slots=True)
class Merging:
    """Brings a run's table up to date; made before anything is compacted, used after all is.

    Attributes:
        loaded: the run.
        client: serves the driver's own requests.
        console: shows how far it is.
        traits: the ways that are safe at the store.
        table: as Spark writes it.
        access: how Spark finds outputs, see :func:`compactor_spark.columnar.staging.access`.
        receipt: what was done; None before.
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
        """For the table of a run; None where Spark writes none.

        Raises:
            InvalidInput: Spark has not what the table takes.
        """
        if not loaded.settings.upsert_key:
            return None
        table = open_table(session, loaded.settings, client)
        address = loaded.settings.table_address
        if address is not None and address.kind == DELTA and (warning := one_driver_only(session)):
            console.say(warning)
        return cls(loaded, client, console, traits, table, access_of(session))

    def merge(self) -> None:
        """Merge all that is committed; what goes wrong is in the receipt."""
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
                # What is compacted stands; the next run merges what is left.
                self.receipt.error = type(error).__name__
                self.receipt.cause = first_line(error)
        for line in self.receipt.causes or [self.receipt.line]:
            self.console.say(line)


class StagedOutputs:
    """Outputs where Spark finds them: where they lie, or on the disk of this machine.

    Args:
        store: where they lie.
        access: ``staged`` passes them through the disk; otherwise the scheme that Spark reads.
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
        """Where Spark finds these; those that were asked for before, and not now, are dropped."""
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
