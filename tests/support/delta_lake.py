"""A Delta table that delta-rs writes to a directory, copied into an in-memory store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from compactor.settings.tables import parse_table
from compactor_tables.maintenance_receipts import DONE, MaintenanceReceipt, RewrittenPartition
from tests.support.memory_store import MemoryStore

BUCKET, PREFIX = "lake", "gold/orders/"
TABLE = parse_table(f"delta:s3://{BUCKET}/{PREFIX}")
# Partition values that paths in the log must encode.
PARTS = ("a b", "50%", "ü/x")


class DeltaLake:
    """A table, its rewrites and the changes of other writers.

    Args:
        directory: an empty directory for the table.
        store: receives each file under the same name; tags are kept.
    """

    def __init__(self, directory: Path, store: MemoryStore) -> None:
        self._directory = directory
        self._rows = 0
        self._runs = 0
        self.store = store
        store.add_bucket(BUCKET)

    def append(self, count: int = 2) -> None:
        """Make a number of commits, each with a small file per partition."""
        for _ in range(count):
            rows = {"part": list(PARTS), "row": list(range(self._rows, self._rows + len(PARTS)))}
            self._rows += len(PARTS)
            table = pa.table(rows)
            write_deltalake(self._directory, table, partition_by=["part"], mode="append")
        self._shelve()

    def rewrite(self) -> MaintenanceReceipt:
        """Rewrite all files of each partition into one, like our maintenance."""
        table = self._open()
        before = table.version()
        table.optimize.compact()
        self._shelve()
        self._runs += 1
        done = RewrittenPartition(
            name="", status=DONE, before=str(before), after=str(self.version), files=1
        )
        receipt = MaintenanceReceipt(table=TABLE.text, run_id=f"run-{self._runs}", engine="spark")
        if self.version > before:
            receipt.partitions.append(done)
            receipt.undo = str(before)
        return receipt

    def delete(self, row: int) -> None:
        """Delete a row as another writer, which rewrites its file."""
        self._open().delete(f"row = {row}")
        self._shelve()

    def restore(self, version: int) -> bool:
        """Restore a version as another writer; return False if VACUUM deleted its files."""
        table = self._open()
        if version == table.version():
            return False
        try:
            table.restore(version)
        except DeltaError:
            return False
        self._shelve()
        return True

    def vacuum(self) -> None:
        """Delete the files that only old versions name."""
        self._open().vacuum(0, enforce_retention_duration=False, dry_run=False)
        self._shelve()

    @property
    def version(self) -> int:
        return self._open().version()

    @property
    def alive(self) -> set[str]:
        """Return the keys of the current version's files, according to delta-rs."""
        root = f"{self._directory}/"
        return {PREFIX + uri.removeprefix(root) for uri in self._open().file_uris()}

    @property
    def tagged(self) -> set[str]:
        """Return the keys of the objects with our tag."""
        found = self.store.contents(BUCKET, PREFIX)
        return {
            key for key in found if self.store.tags(BUCKET, key).get("s3-compactor") == "superseded"
        }

    def _open(self) -> DeltaTable:
        return DeltaTable(self._directory)

    def _shelve(self) -> None:
        files = {
            f"{PREFIX}{path.relative_to(self._directory).as_posix()}": path
            for path in self._directory.rglob("*")
            if path.is_file()
        }
        there = self.store.contents(BUCKET, PREFIX)
        for key in there.keys() - files.keys():
            self.store.remove(BUCKET, key)
        for key in files.keys() - there.keys():
            self.store.seed(BUCKET, key, files[key].read_bytes())
