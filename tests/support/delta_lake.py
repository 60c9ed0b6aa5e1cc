"""A Delta table that delta-rs writes on this machine, and whose files are in a store in memory."""

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
# What paths of a log are encoded for.
PARTS = ("a b", "50%", "ü/x")


class DeltaLake:
    """A table, its rewrites and what others do to it.

    Args:
        directory: empty, for the table.
        store: gets each file, under the same name; tags stay.
    """

    def __init__(self, directory: Path, store: MemoryStore) -> None:
        self._directory = directory
        self._rows = 0
        self._runs = 0
        self.store = store
        store.add_bucket(BUCKET)

    def append(self, count: int = 2) -> None:
        """As many commits, with a small file for each part."""
        for _ in range(count):
            rows = {"part": list(PARTS), "row": list(range(self._rows, self._rows + len(PARTS)))}
            self._rows += len(PARTS)
            table = pa.table(rows)
            write_deltalake(self._directory, table, partition_by=["part"], mode="append")
        self._shelve()

    def rewrite(self) -> MaintenanceReceipt:
        """All files of each part as one, as a rewrite of ours leaves it."""
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
        """By somebody: the file with this row is written anew."""
        self._open().delete(f"row = {row}")
        self._shelve()

    def restore(self, version: int) -> bool:
        """By somebody; false where VACUUM has taken what it takes."""
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
        """Whatever only old versions name goes."""
        self._open().vacuum(0, enforce_retention_duration=False, dry_run=False)
        self._shelve()

    @property
    def version(self) -> int:
        return self._open().version()

    @property
    def alive(self) -> set[str]:
        """Keys of what the current version names, as delta-rs has them."""
        root = f"{self._directory}/"
        return {PREFIX + uri.removeprefix(root) for uri in self._open().file_uris()}

    @property
    def tagged(self) -> set[str]:
        """Keys of what has our tag."""
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
