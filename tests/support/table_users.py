"""Others' changes to a table, by the real libraries: delete, overwrite, append, rewrite, expire.

pyiceberg (0.12) cannot write rewrites or position deletes. Here rewrites are its overwrites under
the operation name that engines use for rewrites; position deletes are files that it can read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table, snapshots
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import Record

from tests.support.maintained_tables import _DeleteFiles
from tests.support.parquet_outputs import parquet
from tests.support.table_places import Place


class Users:
    """Other users of the table of a place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._files = 0

    def delete(self, number: int) -> None:
        """Delete the row with this id by replacing its file."""
        handle = self._handle
        handle.delete(f"id = {number}" if isinstance(handle, DeltaTable) else f"id == {number}")

    def overwrite(self, numbers: Sequence[int]) -> None:
        """Replace all rows by these."""
        self._write(numbers, "overwrite")

    def append(self, numbers: Sequence[int]) -> None:
        self._write(numbers, "append")

    def _write(self, numbers: Sequence[int], mode: Any) -> None:
        handle, rows = self._handle, pa.table({"id": list(numbers)})
        if isinstance(handle, DeltaTable):
            write_deltalake(handle, rows, mode=mode)
        else:
            getattr(handle, mode)(rows)

    def rewrite(self, *, loses: int | None = None) -> None:
        """Rewrite all rows into one file, wrongly without the row ``loses`` if given."""
        handle = self._handle
        if isinstance(handle, DeltaTable):
            handle.optimize.compact()
            return
        rows = handle.scan().to_arrow()
        if loses is not None:
            rows = rows.filter(pc.not_equal(rows.column("id"), loses))
        before = [one.file for one in handle.scan().plan_files()]
        transaction = handle.transaction()
        made = list(_dataframe_to_data_files(handle.metadata, rows, handle.io))
        with (
            _rewrites_are_known(),
            _OverwriteFiles(Operation.REPLACE, transaction, handle.io) as producer,
        ):
            for one in before:
                producer.delete_data_file(one)
            for one in made:
                producer.append_data_file(one)
        transaction.commit_transaction()

    def delete_by_position(self, uri: str, position: int, *, named: bool = True) -> None:
        """Delete a row by an Iceberg delete file, with or without the data file in its bounds."""
        handle: Table = self._handle
        self._files += 1
        rows = pa.table({"file_path": [uri], "pos": pa.array([position], pa.int64())}, _POSITIONS)
        body = parquet(rows)
        key = f"{handle.location().split('/', 3)[3]}/data/deletes-{self._files}.parquet"
        self._place.store.put(self._place.bucket, key, body)
        bound = {_FILE_PATH: uri.encode()} if named else None
        made = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES,
            file_path=f"s3://{self._place.bucket}/{key}",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=1,
            file_size_in_bytes=len(body),
            lower_bounds=bound,
            upper_bounds=bound,
            spec_id=handle.metadata.default_spec_id,
        )
        transaction = handle.transaction()
        with _DeleteFiles(Operation.DELETE, transaction, handle.io) as producer:
            producer.append_data_file(made)
        transaction.commit_transaction()

    def expire(self, *chosen: int) -> None:
        """Expire these snapshots by pyiceberg, or all but the current one."""
        handle: Table = self._handle
        current = handle.metadata.current_snapshot_id
        wanted = chosen or [one.snapshot_id for one in handle.snapshots()]
        handle.maintenance.expire_snapshots().by_ids(
            [one for one in wanted if one != current]
        ).commit()

    @property
    def _handle(self) -> Any:
        return self._place.state().handle


_FILE_PATH, _POS = 2147483546, 2147483545
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": str(_FILE_PATH)}),
        pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": str(_POS)}),
    ]
)


@contextmanager
def _rewrites_are_known() -> Iterator[None]:
    real: Callable[..., Any] = snapshots.update_snapshot_summaries

    def update(summary: Any, previous_summary: Any = None) -> Any:
        given = Summary(Operation.OVERWRITE, **summary.additional_properties)
        found = real(given, previous_summary)
        return Summary(summary.operation, **found.additional_properties)

    with patch("pyiceberg.table.update.snapshot.update_snapshot_summaries", update):
        yield
