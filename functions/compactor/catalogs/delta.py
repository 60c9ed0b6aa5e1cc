"""Delta tables by their location, through delta-rs (deltalake 1.6).

A commit is one version of the log. It adds the files, and sets the transaction of an application
called ``s3-compactor.<log id>``, whose version is the number of the last entry that is in the
table. The version is created if absent, directly after the one that was read. The library's own
retry is off, because it would add the files on top of any version written in between.

Outputs are stored below the table's own location, in a directory whose name begins with ``_``.
Readers find them by paths relative to the table (only Spark reads absolute ones), and VACUUM, which
deletes files that no version names, skips such directories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from compactor.catalogs.delta_columns import (
    delta_schema,
    merged,
    names_of,
    require_fit,
    require_values,
)
from compactor.catalogs.delta_contents import delta_contents
from compactor.catalogs.delta_demands import refusal_of
from compactor.catalogs.delta_history import DeltaHistory
from compactor.catalogs.misfits import noted, require_no_past
from compactor.catalogs.output_footers import Footers, schemas_of
from compactor.errors import CompactorError, InvalidInput, TableConflict, TransientStoreError
from compactor.escaping import visible
from compactor.ports import ObjectStore
from compactor.settings.encryption import encryptions
from compactor.settings.settings import Settings
from compactor.settings.tables import TableAddress, require_readable_key
from compactor.settings.uris import S3Uri
from compactor.sinks.named_history import Restored, restored_before
from compactor.sinks.table_catalog import Holdings, TableContents, TableFile, TableState
from compactor.table_formats.answers import translated
from compactor.table_formats.delta_statistics import statistics_of

MARK = "s3-compactor"
# How many versions to search for ours. If others write more than the second, nothing is known.
_LOOKED_BACK = (20, 1_000)
_UNKNOWN = -1
_CREATED_CONCURRENTLY = ("already exists", "AlreadyExists")


class DeltaCatalog:
    """Implements :class:`compactor.sinks.table_catalog.TableCatalog`.

    Args:
        address: of the table.
        settings: of the run.
        store: where outputs are.
        options: for delta-rs's own store, instead of those derived from ``store``.
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
        self._store = store
        self._footers = Footers(store)
        self._history = DeltaHistory(location, store)
        self._past: tuple[int, Mapping[str, str]] = (-1, {})
        self._options = (
            dict(options) if options is not None else _options_of(store, location.bucket)
        )
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
        except DeltaError as error:
            accepted = f"a Delta table that delta-rs reads; it says: {_said(error)}"
            raise InvalidInput("table", self.address, accepted) from error

    def _state(self, table: DeltaTable) -> TableState:
        last = table.transaction_version(self._application) or 0
        return TableState(
            uuid=str(table.metadata().id),
            location=self._location.uri,
            last=last,
            version=f"version {table.version()}",
            fault=self._fault(table, last) if last else "",
            refusal=refusal_of(table),
            properties=dict(table.metadata().configuration),
            handle=table,
            shape=table.schema().to_json(),
        )

    def _fault(self, table: DeltaTable, last: int) -> str:
        """Return why the version that recorded ``last`` no longer counts; empty if it does."""
        for limit in _LOOKED_BACK:
            found: list[Restored] = []
            history = table.history(limit)
            for one in history:
                # Spark's merges record it as the commit's user metadata.
                spark = f"{self._application}:{last}"
                if one.get(MARK) == self._token(last) or one.get("userMetadata") == spark:
                    return restored_before(found, one["version"])
                found += _restored(one)
            if len(history) < limit:
                break
        return ""

    def _token(self, number: int) -> str:
        return f"{self._log_id}:{number}"

    def contents(self, table: TableState) -> TableContents:
        below = self._settings.destination
        return delta_contents(self._location, self._store, _handle(table).version(), below)

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
                if any(one in str(error) for one in _CREATED_CONCURRENTLY):
                    raise TableConflict(str(error)) from error
                raise

    def _schemas(self, files: Sequence[TableFile]) -> list[tuple[str, Schema]]:
        """Return the distinct schemas of files, each with the URI of the first file that has it."""
        found = schemas_of(self._footers.of(files))
        return [
            (files[number].uri, delta_schema(schema, files[number].uri)) for number, schema in found
        ]

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """See the port."""
        for one in files:
            self._path(one)
        handle = _handle(table) if table is not None else None
        schema = handle.schema() if handle is not None else None
        found = self._footers.unreadable(files)
        for one in files:
            with noted(found, one):
                if one not in found:
                    schema = self._with_columns_of(one, handle, schema, evolve=evolve)
        return found

    def _with_columns_of(
        self, one: TableFile, handle: DeltaTable | None, schema: Schema | None, *, evolve: bool
    ) -> Schema | None:
        """Return the table's columns with those of a file added; None before there is a table.

        Raises:
            InvalidInput: the file's columns do not fit.
        """
        (footer,) = self._footers.of([one])
        ((where, columns),) = self._schemas([one])
        self._added(one, footer)
        if handle is None or schema is None:
            return None
        self._require_no_past(handle, columns, where)
        require_fit(schema, columns, where, evolve=evolve)
        require_values(schema, footer, one.uri)
        return merged(schema, columns)

    def _require_no_past(self, handle: DeltaTable, output: Schema, where: str) -> None:
        """Check that new columns have no past; reads the log only if the output has new columns."""
        known = {name.lower() for name in names_of(handle.schema())}
        more = [name for name in names_of(output) if name.lower() not in known]
        if not more:
            return
        version = handle.version()
        if self._past[0] != version:
            self._past = version, self._history.past_columns(version, handle.schema())
        require_no_past(more, self._past[1], where)

    def _path(self, one: TableFile) -> str:
        """Return the output's path relative to the table."""
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
        schema = handle.schema()
        for where, one in self._schemas(files):
            self._require_no_past(handle, one, where)
            require_fit(schema, one, where, evolve=evolve)
            schema = merged(schema, one)
        if schema != handle.schema():
            self._add_columns(handle, schema)
            raise TableConflict(f"{self.address} has new columns now")
        added: list[AddAction | RemoveAction] = []
        for file, footer in zip(files, self._footers.of(files), strict=True):
            require_values(schema, footer, file.uri)
            added.append(self._added(file, footer))
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
            raise self._refused(handle, error) from error
        self._footers.forget()
        return f"version {handle.version() + 1}"

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        handle = _handle(table)
        with self._answers():
            files = handle.get_add_actions(flatten=True)
        return self._history.holdings(handle.version(), self._application, files, outputs)

    def _add_columns(self, handle: DeltaTable, schema: Schema) -> None:
        """Add the missing columns in a version of their own: delta-rs cannot commit both in one."""
        known = {one.name for one in handle.schema().fields}
        more = [one for one in schema.fields if one.name not in known]
        try:
            with self._answers():
                handle.alter.add_columns(more)
        except DeltaError as error:
            # Another writer may have added the same columns first.
            raise self._refused(handle, error) from error

    def _refused(self, handle: DeltaTable, error: DeltaError) -> Exception:
        """Return the error for a rejected commit: a conflict if the table's version has changed.

        delta-rs raises the same error for a lost race and for everything that it does not support.
        """
        judged = self._judged(error)
        if judged is not error:
            return judged
        try:
            with self._answers():
                table = DeltaTable(self._location.uri, storage_options=self._options)
                moved = table.version() != handle.version()
        except DeltaError:
            # The table now has something that delta-rs cannot read: the next load reports it.
            moved = True
        if moved:
            return TableConflict(_said(error))
        accepted = f"a Delta table that takes a commit of delta-rs; it says: {_said(error)}"
        return InvalidInput("table", self.address, accepted)

    def _added(self, one: TableFile, footer: Any) -> AddAction:
        require_readable_key(self._address, "table", one.key)
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
        """Translate delta-rs's errors about availability and permissions into this program's."""
        with translated(self.address):
            try:
                yield
            except (CompactorError, CommitFailedError, TableNotFoundError):
                raise
            except (OSError, DeltaError) as error:
                raise self._judged(error) from error

    def _judged(self, error: Exception) -> Exception:
        said = _said(error)
        if "AccessDenied" in said or "403 Forbidden" in said:
            return InvalidInput("permission", said, "a role that may use this table")
        if isinstance(error, OSError) or "Generic S3 error" in said or "object store" in said:
            return TransientStoreError(f"{self.address}: {said}")
        return error


def _said(error: Exception) -> str:
    return visible(" ".join(str(error).split()))


def _restored(one: Mapping[str, Any]) -> list[Restored]:
    operation = str(one.get("operation", "")).upper()
    if operation == "RESTORE":
        to = (one.get("operationParameters") or {}).get("version")
        text = str(to)
        return [Restored(one["version"], int(text) if text.isdecimal() else _UNKNOWN)]
    if operation.startswith(("CREATE OR REPLACE", "REPLACE")):
        return [Restored(one["version"], _UNKNOWN)]
    return []


def _options_of(store: ObjectStore, bucket: str) -> dict[str, str]:
    """Return the run's endpoint and the encryption that writes to the bucket name.

    Credentials are found the way that every AWS SDK does.
    """
    # The names are those of the crate object_store, AmazonS3ConfigKey.
    encryption = encryptions().of(bucket)
    named = {
        "aws_server_side_encryption": encryption.algorithm,
        "aws_sse_kms_key_id": encryption.key_arn,
    }
    options = {name: value for name, value in named.items() if value}
    endpoint = store.endpoint_url
    if not endpoint or "amazonaws.com" in endpoint:
        return options
    options["AWS_ENDPOINT_URL"] = endpoint
    if endpoint.startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def _handle(table: TableState) -> DeltaTable:
    assert isinstance(table.handle, DeltaTable)  # noqa: S101 - made by load
    return table.handle
