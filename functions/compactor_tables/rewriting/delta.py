"""Rewrites small files of a Delta table, and commits by the next entry of its log.

The entry is created if absent, with ``dataChange`` false. If another writer was first, what it did
decides: a commit that left our files, the schema and the protocol alone is no conflict.
"""

from __future__ import annotations

import io as streams
import posixpath
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from compactor.documents import create_once
from compactor.errors import IntegrityError, ObjectMissing, TableConflict
from compactor.ports import Clock, ObjectStore
from compactor.settings.tables import TableAddress
from compactor.table_formats.delta_actions import Line, Metadata, lines_of_json
from compactor.table_formats.delta_log import LOG, DeltaFile, DeltaLog, DeltaState
from compactor.table_formats.delta_statistics import statistics_of
from compactor.table_formats.file_io import place_of
from compactor_tables.metadata.delta_schema import arrow_schema, physical_names, unwritable
from compactor_tables.orders import Order, PartitionOrder
from compactor_tables.rewriting.row_files import Located, StoredFile, read_ahead, write_files
from compactor_tables.selecting import is_small_for_delta
from compactor_tables.table_engine import PREFIX, RewritesOnly, Rewritten, Watch

_SIGNED = f"{PREFIX}.maintenance:"
_CODEC = "zstd"
_MOST_COMMITS = 100


class _Small(NamedTuple):
    """A file that is replaced."""

    path: str
    file: DeltaFile


class DeltaRewrites(RewritesOnly):
    """Implements :class:`compactor_tables.table_engine.Tables`.

    Args:
        address: of the table.
        store: where it is.
        clock: of this machine.
        watch: receives how many files have been read.
    """

    def __init__(
        self,
        address: TableAddress,
        store: ObjectStore,
        clock: Clock,
        watch: Watch = lambda done, total: None,
    ) -> None:
        location = address.location
        assert location is not None  # noqa: S101 - such are the addresses of Delta tables
        self._location, self._store, self._clock, self._watch = location, store, clock, watch
        self._state = DeltaLog(location, store).load()

    def version(self) -> str:
        """See the protocol."""
        return str(self._present().version)

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        """See the protocol."""
        return unwritable(self._present().protocol, self._metadata())

    def done(self, what: str, order: Order) -> Rewritten | None:
        """See the protocol."""
        last, said = self._present().version, _said(order, what)
        for number in range(last, int(order.measured or 0), -1):
            lines = self._entry(number)
            if lines is None:
                return None
            if any(one.commit_info and one.commit_info.user_metadata == said for one in lines):
                return _rewritten(number, lines)
        return None

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        """See the protocol; rows are compared before the commit."""
        state, values = self._present(), self._values(partition)
        small = [
            _Small(path, one)
            for (path, vector), one in state.files.items()
            if not vector
            and _has(one.values, values)
            and is_small_for_delta(one.size, order.target_bytes)
        ]
        if len(small) < order.min_files:
            return None
        schema = arrow_schema(self._metadata())
        directory = posixpath.dirname(small[0].path) if "://" not in small[0].path else ""
        stored = write_files(
            self._rows(small, schema),
            schema,
            target_bytes=order.target_bytes,
            codec=_CODEC,
            place=lambda: self._place(
                posixpath.join(directory, f"part-{uuid.uuid4()}.zstd.parquet")
            ),
            store=self._store,
        )
        return self._commit(small, stored, _said(order, what), directory)

    def _place(self, path: str) -> tuple[str, str]:
        """Return bucket and key of a file by its path in the log."""
        decoded = unquote(path)
        if "://" in decoded:
            return place_of(decoded)
        return self._location.bucket, f"{self._location.prefix}{decoded}"

    def _metadata(self) -> Metadata:
        metadata = self._state.metadata
        assert metadata is not None  # noqa: S101 - else there is no state
        return metadata

    def _values(self, partition: PartitionOrder) -> dict[str, str | None]:
        """Return a partition's values by the names of columns in the log."""
        physical = physical_names(self._metadata())
        return {physical[one.column]: one.value for one in partition.where}

    def _present(self) -> DeltaState:
        """Return the state of the newest version."""
        while (lines := self._entry(self._state.version + 1)) is not None:
            self._state.apply(lines, self._clock.now())
            self._state.version += 1
        return self._state

    def _entry(self, number: int) -> list[Line] | None:
        bucket, key = self._entry_place(number)
        try:
            return [*lines_of_json(self._store.get(bucket, key))]
        except ObjectMissing:
            return None

    def _entry_place(self, number: int) -> tuple[str, str]:
        return self._location.bucket, f"{self._location.prefix}{LOG}{number:020}.json"

    def _rows(self, small: Sequence[_Small], schema: pa.Schema) -> Iterator[pa.Table]:
        def load(_: _Small, body: bytes) -> pa.Table:
            file = pq.ParquetFile(streams.BytesIO(body), coerce_int96_timestamp_unit="us")
            names = {*file.schema_arrow.names}
            table = file.read([name for name in schema.names if name in names])
            columns = [
                table[each.name].cast(each.type)
                if each.name in names
                else pa.nulls(file.metadata.num_rows, each.type)
                for each in schema
            ]
            return pa.Table.from_arrays(columns, schema=schema)

        located = [Located(one, *self._place(one.path), one.file.size) for one in small]
        tables = read_ahead(located, load, self._store)
        for number, (rows, one) in enumerate(zip(tables, small, strict=True), start=1):
            if one.file.rows is not None and rows.num_rows != one.file.rows:
                said = f"its log says {one.file.rows:,}"
                raise IntegrityError(f"{one.path} has {rows.num_rows:,} rows, and {said}")
            self._watch(number, len(small))
            yield rows

    def _commit(
        self, small: Sequence[_Small], stored: Sequence[StoredFile], said: str, directory: str
    ) -> Rewritten:
        paths, number = {one.path for one in small}, self._state.version + 1
        token = uuid.uuid4().hex
        body = b"\n".join(
            map(msgspec.json.encode, self._actions(small, stored, said, token, directory))
        )
        for _ in range(_MOST_COMMITS):
            if create_once(self._store, self._entry_place(number), body):
                break
            lines = self._entry(number) or []
            if any(one.commit_info and one.commit_info.txn_id == token for one in lines):
                break
            _require_untouched(lines, paths, number)
            number += 1
        else:
            raise TableConflict(f"others committed first, {_MOST_COMMITS} times in a row")
        lines = [*lines_of_json(body)]
        self._present()
        return _rewritten(number, lines)

    def _actions(
        self,
        small: Sequence[_Small],
        stored: Sequence[StoredFile],
        said: str,
        token: str,
        directory: str,
    ) -> Iterator[Mapping[str, Any]]:
        now = int(self._clock.now() * 1_000)
        rows = sum(one.metadata.num_rows for one in stored)
        yield {
            "commitInfo": {
                "timestamp": now,
                "operation": "OPTIMIZE",
                "operationParameters": {"predicate": "[]", "auto": "false"},
                "operationMetrics": {
                    "numRemovedFiles": f"{len(small)}",
                    "numAddedFiles": f"{len(stored)}",
                    "numRows": f"{rows}",
                },
                "isBlindAppend": False,
                "engineInfo": PREFIX,
                "txnId": token,
                "userMetadata": said,
            }
        }
        for one in small:
            yield {
                "remove": {
                    "path": one.path,
                    "deletionTimestamp": now,
                    "dataChange": False,
                    "extendedFileMetadata": True,
                    "partitionValues": one.file.values,
                    "size": one.file.size,
                }
            }
        for file in stored:
            # The directory is as the log encodes it, and the file's own name needs no encoding.
            yield {
                "add": {
                    "path": posixpath.join(directory, posixpath.basename(file.key)),
                    "partitionValues": small[0].file.values,
                    "size": file.size,
                    "modificationTime": now,
                    "dataChange": False,
                    "stats": statistics_of(file.metadata),
                }
            }


def _has(found: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> bool:
    # An empty text is null for every type.
    return all((found.get(name) or None) == value for name, value in wanted.items())


def _said(order: Order, what: str) -> str:
    return f"{_SIGNED}{order.run_id}:{what}"


def _require_untouched(lines: Sequence[Line], paths: set[str], number: int) -> None:
    """Check that another writer's commit does not conflict with a rewrite of these files.

    Raises:
        TableConflict: it does.
    """
    for one in lines:
        if one.meta_data is not None or one.protocol is not None:
            raise TableConflict(f"version {number} changed the table's metadata")
        touched = one.remove or one.add
        if touched is not None and touched.path in paths:
            raise TableConflict(f"version {number} changed {touched.path}")


def _rewritten(number: int, lines: Sequence[Line]) -> Rewritten:
    removed = [one.remove for one in lines if one.remove is not None]
    added = [one.add for one in lines if one.add is not None]
    metrics: Any = next((one.commit_info.operation_metrics for one in lines if one.commit_info), {})
    return Rewritten(
        before=f"{number - 1}",
        after=f"{number}",
        files=len(removed),
        bytes=sum(one.size or 0 for one in removed),
        into=len(added),
        into_bytes=sum(one.size for one in added),
        rows=int(metrics["numRows"]) if "numRows" in (metrics or {}) else None,
    )
