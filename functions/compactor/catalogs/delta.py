"""Delta tables by their location, by delta-rs (deltalake 1.6).

A commit is one version of the log: the files, and the transaction of an application that is called
``s3-compactor.<log id>``, whose version is the number of the entry that the table has everything up
to. It is created if absent, as the version after the one that was read; the library's own retry is
off, for it would put the files on top of whatever came in between.

Outputs lie below the table's own location, in a directory whose name begins with ``_``: readers
find them by paths relative to the table (absolute ones are read by Spark alone), and VACUUM, which
takes what no version names, leaves such directories alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake._internal import RemoveAction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from compactor.catalogs.answers import translated
from compactor.catalogs.delta_columns import delta_schema, merged, require_fit, statistics_of
from compactor.catalogs.misfits import noted
from compactor.catalogs.parquet import Footers, schemas_of
from compactor.errors import CompactorError, InvalidInput, TableConflict, TransientStoreError
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor.tables.history import Restored, restored_before
from compactor.tables.port import TableFile, TableState

MARK = "s3-compactor"
# Versions looked back for our own: where others write more than the second, nothing is known.
_LOOKED_BACK = (20, 1_000)
_UNKNOWN = -1
_CREATED_AT_ONCE = ("already exists", "AlreadyExists")


class DeltaCatalog:
    """Implements :class:`compactor.tables.port.TableCatalog`.

    Args:
        address: of the table.
        settings: of the run.
        store: where outputs are.
        options: of delta-rs's own store, instead of those that follow from ``store``.
    """

    def __init__(
        self,
        address: TableAddress,
        settings: Settings,
        store: ObjectStore,
        options: Mapping[str, str] | None = None,
    ) -> None:
        location = address.location
        assert location is not None  # noqa: S101 - such are the addresses of Delta tables
        self._location: S3Uri = location
        self._address = address
        self._settings = settings
        self._footers = Footers(store)
        self._options = dict(options) if options is not None else _options_of(store)
        self._log_id = ""

    @property
    def address(self) -> str:
        return self._address.text

    @property
    def _application(self) -> str:
        return f"{MARK}.{self._log_id}"

    def load(self, log_id: str) -> TableState | None:
        self._log_id = log_id
        try:
            with self._answers():
                table = DeltaTable(self._location.uri, storage_options=self._options)
                return self._state(table)
        except TableNotFoundError:
            return None

    def _state(self, table: DeltaTable) -> TableState:
        last = table.transaction_version(self._application) or 0
        return TableState(
            uuid=str(table.metadata().id),
            location=self._location.uri,
            last=last,
            version=f"version {table.version()}",
            rows=table.count(),
            fault=self._fault(table, last) if last else "",
            properties=dict(table.metadata().configuration),
            handle=table,
            shape=table.schema().to_json(),
        )

    def _fault(self, table: DeltaTable, last: int) -> str:
        """Why the version that said so no longer counts."""
        for limit in _LOOKED_BACK:
            found: list[Restored] = []
            history = table.history(limit)
            for one in history:
                # What Spark merges says so as its user's metadata.
                spark = f"{self._application}:{last}"
                if one.get(MARK) == self._token(last) or one.get("userMetadata") == spark:
                    return restored_before(found, one["version"])
                found += _restored(one)
            if len(history) < limit:
                break
        return ""

    def _token(self, number: int) -> str:
        return f"{self._log_id}:{number}"

    def create(self, files: Sequence[TableFile]) -> None:
        if self._settings.table_partitioning:
            accepted = "an empty list for a Delta table: its outputs hold all their columns"
            raise InvalidInput(
                "table_partitioning", list(self._settings.table_partitioning), accepted
            )
        schema = self._schemas(files)[0][1]
        for where, other in self._schemas(files)[1:]:
            require_fit(schema, other, where, evolve=True)
            schema = merged(schema, other)
        with self._answers():
            try:
                DeltaTable.create(
                    self._location.uri, schema, mode="error", storage_options=self._options
                )
            except DeltaError as error:
                if any(one in str(error) for one in _CREATED_AT_ONCE):
                    raise TableConflict(str(error)) from error
                raise

    def _schemas(self, files: Sequence[TableFile]) -> list[tuple[str, Schema]]:
        """The different schemas of files, each with the URI of the first that has it."""
        found = schemas_of(self._footers.of(files))
        return [
            (files[number].uri, delta_schema(schema, files[number].uri)) for number, schema in found
        ]

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """See the port."""
        if table is not None:
            self._require_plain(_handle(table))
        for one in files:
            self._path(one)
        schema = _handle(table).schema() if table is not None else None
        found = self._footers.unreadable(files)
        for one in files:
            with noted(found, one):
                if one not in found:
                    schema = self._with_columns_of(one, schema, evolve=evolve)
        return found

    def _with_columns_of(
        self, one: TableFile, schema: Schema | None, *, evolve: bool
    ) -> Schema | None:
        """The columns of the table with those of a file; None before there is a table.

        Raises:
            InvalidInput: they do not fit.
        """
        (footer,) = self._footers.of([one])
        ((where, columns),) = self._schemas([one])
        self._added(one, footer)
        if schema is None:
            return None
        require_fit(schema, columns, where, evolve=evolve)
        return merged(schema, columns)

    def _require_plain(self, table: DeltaTable) -> None:
        metadata = table.metadata()
        if metadata.partition_columns:
            accepted = (
                "a Delta table without partitions: its outputs hold all their columns; this one is"
                f" partitioned by {', '.join(metadata.partition_columns)}"
            )
            raise InvalidInput("table", self.address, accepted)
        mapping = metadata.configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":
            accepted = f"a Delta table without column mapping, which is {mapping!r} here"
            raise InvalidInput("table", self.address, accepted)

    def _path(self, one: TableFile) -> str:
        """Where an output lies, from the table on."""
        place = self._location
        if one.bucket != place.bucket or not one.key.startswith(f"{place.prefix}_"):
            accepted = (
                f"a prefix such as {place.uri}_compacted/: what a Delta table is made of lies below"
                " it"
            )
            raise InvalidInput("s3_destination_uri", one.uri, accepted)
        return one.key.removeprefix(place.prefix)

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        handle = _handle(table)
        if f"version {handle.version()}" != table.version:
            raise TableConflict(f"{self.address} is not at {table.version} any more")
        self._require_plain(handle)
        schema = handle.schema()
        for where, one in self._schemas(files):
            require_fit(schema, one, where, evolve=evolve)
            schema = merged(schema, one)
        if schema != handle.schema():
            self._add_columns(handle, schema)
            raise TableConflict(f"{self.address} has new columns now")
        added: list[AddAction | RemoveAction] = [
            self._added(one, footer)
            for one, footer in zip(files, self._footers.of(files), strict=True)
        ]
        try:
            with self._answers():
                handle.create_write_transaction(
                    added,
                    "append",
                    schema,
                    commit_properties=CommitProperties(
                        custom_metadata={MARK: self._token(number)},
                        max_commit_retries=0,
                        app_transactions=[Transaction(self._application, number)],
                    ),
                    post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
                )
        except CommitFailedError as error:
            raise TableConflict(str(error)) from error
        self._footers.forget()
        return f"version {handle.version() + 1}"

    def _add_columns(self, handle: DeltaTable, schema: Schema) -> None:
        """In a version before the files: delta-rs has no commit of both."""
        known = {one.name for one in handle.schema().fields}
        more = [one for one in schema.fields if one.name not in known]
        with self._answers():
            try:
                handle.alter.add_columns(more)
            except DeltaError as error:
                # Perhaps because somebody else added them just now.
                raise TableConflict(str(error)) from error

    def _added(self, one: TableFile, footer: Any) -> AddAction:
        return AddAction(
            path=self._path(one),
            size=one.size,
            partition_values={},
            modification_time=0,
            data_change=True,
            stats=statistics_of(footer),
        )

    @contextmanager
    def _answers(self) -> Iterator[None]:
        """What delta-rs says of the weather and of rights, in our errors."""
        with translated(self.address):
            try:
                yield
            except (CompactorError, CommitFailedError, TableNotFoundError):
                raise
            except (OSError, DeltaError) as error:
                raise self._judged(error) from error

    def _judged(self, error: Exception) -> Exception:
        told = " ".join(str(error).split())
        if "AccessDenied" in told or "403" in told:
            return InvalidInput("permission", told, "a role that may use this table")
        if isinstance(error, OSError) or "Generic S3 error" in told or "object store" in told:
            return TransientStoreError(f"{self.address}: {told}")
        return error


def _restored(one: Mapping[str, Any]) -> list[Restored]:
    operation = str(one.get("operation", "")).upper()
    if operation == "RESTORE":
        to = (one.get("operationParameters") or {}).get("version")
        text = str(to)
        return [Restored(one["version"], int(text) if text.isdecimal() else _UNKNOWN)]
    if operation.startswith(("CREATE OR REPLACE", "REPLACE")):
        return [Restored(one["version"], _UNKNOWN)]
    return []


def _options_of(store: ObjectStore) -> dict[str, str]:
    """The endpoint of the run's own store; rights are found as every AWS SDK finds them."""
    endpoint = store.endpoint_url
    if not endpoint or "amazonaws.com" in endpoint:
        return {}
    options = {"AWS_ENDPOINT_URL": endpoint}
    if endpoint.startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def _handle(table: TableState) -> DeltaTable:
    assert isinstance(table.handle, DeltaTable)  # noqa: S101 - made by load
    return table.handle
