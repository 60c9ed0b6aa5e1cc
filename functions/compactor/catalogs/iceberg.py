"""Iceberg tables, through pyiceberg (0.12): in Glue, a REST catalog, or on this machine.

A commit is one transaction: new columns, the data files, and two properties of the table,

    s3-compactor.<log id>.last       number of the last table log entry that is in the table
    s3-compactor.<log id>.snapshot   id and sequence number of the snapshot that added it

It is conditional on the snapshot that the table was read with. The library's own retry is off,
because it would add the files to whatever it finds, without checking ``last``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema, assign_fresh_schema_ids, index_name_by_id
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.snapshots import Snapshot as TableSnapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER as UNSORTED

from compactor.catalogs import iceberg_history
from compactor.catalogs.data_files import DataFiles
from compactor.catalogs.iceberg_columns import (
    iceberg_schema,
    misfits,
    require_field_ids,
    require_values,
)
from compactor.catalogs.iceberg_contents import iceberg_contents
from compactor.catalogs.iceberg_partitions import (
    partition_of,
    require_names_apart,
    spec_of,
    spec_refusal,
)
from compactor.catalogs.misfits import noted, require_fit, require_no_past
from compactor.catalogs.output_footers import Footers, schemas_of
from compactor.errors import IntegrityError, InvalidInput, TableConflict
from compactor.escaping import visible
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.tables import TableAddress, require_readable_key
from compactor.sinks.named_history import Snapshot, rolled_back
from compactor.sinks.table_catalog import Holdings, TableContents, TableFile, TableState
from compactor.table_formats.answers import translated
from compactor.table_formats.iceberg_catalogs import iceberg_catalog

PREFIX = "s3-compactor."
_FORMAT_VERSION = 2
_ENCRYPTED_BY = "encryption.key-id"
_MESSAGE = re.compile(r"^ +(.*) \[type=", re.MULTILINE)


class IcebergCatalog:
    """Implements :class:`compactor.sinks.table_catalog.TableCatalog`.

    Args:
        address: of the table.
        settings: of the run.
        store: where outputs and the table's metadata are.
        catalog: overrides the one that the address names.
    """

    def __init__(
        self,
        address: TableAddress,
        settings: Settings,
        store: ObjectStore,
        catalog: Catalog | None = None,
    ) -> None:
        self._address = address
        self._settings = settings
        self._store = store
        self._footers = Footers(store)
        self._opened = catalog
        self._log_id = ""
        # Manifest entries of files, valid for one shape of the table (columns and partitioning).
        self._described: tuple[str, dict[TableFile, DataFile]] = ("", {})

    @property
    def address(self) -> str:
        return self._address.text

    @property
    def _catalog(self) -> Catalog:
        if self._opened is None:
            self._opened = iceberg_catalog(self._address, self._store)
        return self._opened

    def load(self, log_id: str) -> TableState | None:
        self._log_id = log_id
        try:
            with translated(self.address):
                table = self._catalog.load_table(self._address.name)
        except NoSuchIcebergTableError:
            accepted = "an Iceberg table, or a name that is free"
            raise InvalidInput("table", self.address, accepted) from None
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except ValidationError as error:
            accepted = f"an Iceberg table whose metadata pyiceberg reads; it says: {_said(error)}"
            raise InvalidInput("table", self.address, accepted) from error
        return self._state(table)

    def _state(self, table: Table) -> TableState:
        current = table.metadata.current_snapshot()
        last = self._number(table.metadata)
        return TableState(
            uuid=str(table.metadata.table_uuid),
            location=table.metadata.location,
            last=last,
            version=f"snapshot {current.snapshot_id}" if current is not None else "no snapshot",
            fault=self._fault(table) if last else "",
            refusal=_refusal(table.metadata),
            properties=dict(table.metadata.properties),
            handle=table,
            shape=_shape(table.metadata),
        )

    def _number(self, metadata: TableMetadata) -> int:
        text = metadata.properties.get(f"{PREFIX}{self._log_id}.last", "0")
        if not text.isdecimal():
            raise IntegrityError(
                f"{self.address} has property {PREFIX}{self._log_id}.last = {text!r}, which is no"
                " number: it was changed by hand"
            )
        return int(text)

    def _fault(self, table: Table) -> str:
        """Return why the snapshot that recorded ``last`` is no longer part of the table."""
        metadata = table.metadata
        text = metadata.properties.get(f"{PREFIX}{self._log_id}.snapshot", "")
        ours, _, sequence = text.partition(":")
        if not ours.isdecimal() or not sequence.isdecimal():
            return f"its property {PREFIX}{self._log_id}.snapshot is {text!r}"
        current = metadata.current_snapshot()
        with translated(self.address):
            return rolled_back(
                _snapshots(metadata),
                current.snapshot_id if current else None,
                int(ours),
                int(sequence),
                _earlier(table, int(sequence)),
            )

    def contents(self, table: TableState) -> TableContents:
        return iceberg_contents(_handle(table), self.address, self._settings.destination)

    def create(self, files: Sequence[TableFile]) -> None:
        schema = self._schema_of(files)
        spec = spec_of(self._settings.table_partitions, schema)
        if spec.fields:
            self._require_one_partition(files, new_table_metadata(schema, spec, UNSORTED, ""))
        given = (self._address.name, schema)
        try:
            with translated(self.address):
                if self._address.kind == "sql":
                    with suppress(NamespaceAlreadyExistsError):
                        self._catalog.create_namespace(self._address.name[:-1])
                try:
                    self._catalog.create_table(*given, partition_spec=spec)
                except ValueError:
                    # Neither the catalog nor the namespace has a default location for tables.
                    self._catalog.create_table(
                        *given, partition_spec=spec, location=self._usual_location
                    )
        except TableAlreadyExistsError as error:
            raise TableConflict(str(error)) from error
        except NoSuchNamespaceError:
            accepted = "a database, or namespace, that is there"
            raise InvalidInput("table", self.address, accepted) from None

    @property
    def _usual_location(self) -> str:
        destination = self._settings.destination
        return f"s3://{destination.bucket}/{destination.prefix.rstrip('/')}.table"

    def _schema_of(self, files: Sequence[TableFile]) -> Schema:
        """Return all columns of these files.

        Raises:
            InvalidInput: a column's types differ between files, or Iceberg has no such type.
        """
        found = self._schemas(files)
        made = Schema(*found[0][1].fields)
        for where, schema in found[1:]:
            more = list(misfits(made.as_struct(), schema.as_struct()))
            require_fit(more, where, evolve=True)
            names = {one.column for one in more if "." not in one.column}
            if len(names) < len(more):
                accepted = f"outputs whose nested columns are alike; {where} has {more[0].column}"
                raise InvalidInput("table", self.address, accepted)
            made = Schema(*made.fields, *(one for one in schema.fields if one.name in names))
        return assign_fresh_schema_ids(made)

    def _schemas(self, files: Sequence[TableFile]) -> list[tuple[str, Schema]]:
        """Return the distinct schemas of files, each with the URI of the first file that has it."""
        found = schemas_of(self._footers.of(files))
        return [
            (files[number].uri, iceberg_schema(schema, files[number].uri))
            for number, schema in found
        ]

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """See the port. Tries the columns out on a transaction that is never committed."""
        found = self._footers.unreadable(files)
        staged = _handle(table).transaction() if table is not None else None
        taken: set[pa.Schema] = set()
        for one in files:
            with noted(found, one):
                if one not in found:
                    self._take(staged, one, taken, evolve=evolve)
        if staged is not None:
            _map_names(staged)
            self._describe(staged.table_metadata, files, found)
        return found

    def _describe(
        self, metadata: TableMetadata, files: Sequence[TableFile], found: dict[TableFile, str]
    ) -> None:
        """Build the files' manifest entries; :meth:`append` reuses them for the same columns."""
        data_files = DataFiles(metadata)
        self._described = _shape(metadata), {}
        for one in files:
            with noted(found, one):
                if one not in found:
                    (footer,) = self._footers.of([one])
                    require_values(metadata.schema(), footer, one.uri)
                    self._described[1][one] = data_files.of(one, footer)

    def _take(
        self, staged: Transaction | None, one: TableFile, taken: set[pa.Schema], *, evolve: bool
    ) -> None:
        """Add the columns of a file to the staged table, once for each schema.

        Raises:
            InvalidInput: they do not fit.
        """
        require_readable_key(self._address, "table", one.key)
        (footer,) = self._footers.of([one])
        ((_, arrow),) = schemas_of([footer])
        if arrow in taken:
            return
        schema = iceberg_schema(arrow, one.uri)
        if staged is not None:
            names = [column.name for column in schema.fields]
            require_names_apart(names, staged.table_metadata, one.uri)
            _add_columns(staged, schema, one.uri, evolve=evolve)
        else:
            require_field_ids(Schema(), footer, one.uri)
        taken.add(arrow)

    def _require_one_partition(self, files: Sequence[TableFile], metadata: TableMetadata) -> None:
        """Checked before a table is created too, because its partitioning would stay."""
        for file, footer in zip(files, self._footers.of(files), strict=True):
            partition_of(file, footer, metadata)
            require_values(metadata.schema(), footer, file.uri)

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        handle = _handle(table)
        if self._state(handle).version != table.version:
            # pyiceberg updates its handle after a commit of its own.
            raise TableConflict(f"{self.address} is not at {table.version} any more")
        # Set on this handle only: no update writes it to the table.
        handle.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
        footers = self._footers.of(files)
        try:
            with translated(self.address):
                transaction = handle.transaction()
                self._evolve(transaction, files, evolve=evolve)
                self._add(transaction, list(zip(files, footers, strict=True)), number)
                made = transaction.table_metadata.current_snapshot()
                transaction.commit_transaction()
        except (CommitFailedException, FileNotFoundError) as error:
            # When a snapshot has expired since it was read, its manifests are gone too.
            raise TableConflict(str(error)) from error
        self._footers.forget()
        self._described = ("", {})
        return f"snapshot {made.snapshot_id}" if made is not None else ""

    def _evolve(
        self, transaction: Transaction, files: Sequence[TableFile], *, evolve: bool
    ) -> None:
        """Add missing columns, and a name mapping, because outputs have no field ids."""
        for where, schema in self._schemas(files):
            _add_columns(transaction, schema, where, evolve=evolve)
        _map_names(transaction)

    def _add(
        self, transaction: Transaction, files: Sequence[tuple[TableFile, Any]], number: int
    ) -> None:
        token = f"{PREFIX}{self._log_id}"
        summary = {f"{token}.last": str(number)}
        data_files = DataFiles(transaction.table_metadata)
        shape, known = self._described
        if shape != _shape(transaction.table_metadata):
            known = {}
        with transaction.update_snapshot(snapshot_properties=summary).fast_append() as producer:
            for file, footer in files:
                producer.append_data_file(known.get(file) or data_files.of(file, footer))
        made = transaction.table_metadata.current_snapshot()
        assert made is not None  # noqa: S101 - it was added just now
        said = {
            f"{token}.last": str(number),
            f"{token}.snapshot": f"{made.snapshot_id}:{made.sequence_number}",
        }
        transaction.set_properties(said)

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        return iceberg_history.holdings(_handle(table), f"{PREFIX}{self._log_id}.last", outputs)


def _refusal(metadata: TableMetadata) -> str:
    """Return why files cannot be added, as what would be accepted instead; empty if they can."""
    version = metadata.format_version
    if version != _FORMAT_VERSION:
        why = (
            "which has no sequence numbers to recognise a rollback by"
            if version < _FORMAT_VERSION
            else "which pyiceberg does not write"
        )
        return f"an Iceberg table of format version 2; this one is of version {version}, {why}"
    if metadata.properties.get(_ENCRYPTED_BY):
        return f"an Iceberg table without encryption, which {_ENCRYPTED_BY} turns on here"
    return spec_refusal(metadata)


def _said(error: Exception) -> str:
    """Return pydantic's own message, without the long names and values around it."""
    found = _MESSAGE.search(str(error))
    return visible(found[1] if found else " ".join(str(error).split()))


def _require_no_past(schema: Schema, metadata: TableMetadata, where: str) -> None:
    past = iceberg_history.past_columns(metadata)
    if past:
        names = index_name_by_id(assign_fresh_schema_ids(schema)).values()
        require_no_past(names, past, where)


def _add_columns(transaction: Transaction, schema: Schema, where: str, *, evolve: bool) -> None:
    """Add the columns of an output that the table does not have.

    Raises:
        InvalidInput: they do not fit, or must not be added.
    """
    _require_no_past(schema, transaction.table_metadata, where)
    known = transaction.table_metadata.schema().as_struct()
    found = list(misfits(known, schema.as_struct()))
    require_fit(found, where, evolve=evolve)
    if found:
        with transaction.update_schema() as update:
            update.union_by_name(assign_fresh_schema_ids(schema))


def _map_names(transaction: Transaction) -> None:
    metadata = transaction.table_metadata
    if metadata.name_mapping() is None:
        names = iceberg_history.name_mapping(metadata).model_dump_json()
        transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: names})


def _shape(metadata: TableMetadata) -> str:
    """Return what decides which outputs fit a table."""
    mapping = metadata.properties.get(TableProperties.DEFAULT_NAME_MAPPING, "")
    return f"{metadata.schema().model_dump_json()}\n{metadata.spec().model_dump_json()}\n{mapping}"


def _handle(table: TableState) -> Table:
    assert isinstance(table.handle, Table)  # noqa: S101 - made by load
    return table.handle


def _snapshots(metadata: TableMetadata) -> dict[int, Snapshot]:
    return {
        one.snapshot_id: Snapshot(one.parent_snapshot_id, one.sequence_number or 0, _adds_all(one))
        for one in metadata.snapshots
    }


def _adds_all(snapshot: TableSnapshot) -> bool:
    summary = snapshot.summary
    if summary is None or summary["total-data-files"] is None:
        return False
    # A rewrite of the whole table adds all files, too, and deletes those that were there.
    is_first = summary["deleted-data-files"] in (None, "0")
    return is_first and summary["total-data-files"] == summary["added-data-files"]


def _earlier(table: Table, sequence: int) -> Iterator[Mapping[int, Snapshot]]:
    """Yield the snapshots in earlier metadata, newest first, back to a sequence number."""
    for one in reversed(table.metadata.metadata_log):
        try:
            metadata = FromInputFile.table_metadata(table.io.new_input(one.metadata_file))
        except FileNotFoundError:
            return
        yield _snapshots(metadata)
        if getattr(metadata, "last_sequence_number", 0) < sequence:
            return
