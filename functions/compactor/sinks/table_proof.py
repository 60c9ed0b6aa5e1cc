"""Whether the table has an output; checked before anything proceeds without that output.

Once an output is in the table, it belongs to the table: the table's compaction rewrites its rows,
snapshot expiry deletes the object, and users delete rows. So neither the presence nor the absence
of the object proves anything about its rows; only the table's metadata does.

If rows have a key, the table consists of merged rows, and no file of it proves an output. In that
case the outputs belong to this destination alone, and hold all records as long as they exist.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace

from compactor.errors import IntegrityError
from compactor.log.entries import Commit, Output
from compactor.log.identity import read_identity
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.checks import require_known
from compactor.sinks.table_catalog import TableCatalog, TableContents, TableFile, TableState
from compactor.sinks.table_entries import TableLogState
from compactor.sinks.table_log import TableLog, table_log_there
from compactor.sinks.upserts import UpsertKey

#: Opens the table that these settings name.
OpenCatalog = Callable[[Settings, ObjectStore], TableCatalog]


@dataclass(frozen=True, slots=True)
class TableProof:
    """A table and its log at one moment.

    Attributes:
        address: of the table.
        table: None before anything was added to it.
        contents: files of the table; None if its rows have a key, or nothing was added to it.
    """

    address: str
    log: TableLogState
    table: TableState | None
    contents: TableContents | None = None

    def has(self, path: str, commit: Commit) -> bool:
        """Return True when the output of this commit was added to the table."""
        if self.table is None or self._is_missing(commit):
            return False
        return self.log.is_in(path, commit.sequence, self.table.last)

    def releases(self, commit: Commit) -> bool:
        """Return True when an operator accepted the missing output and released its sources."""
        return self.log.releases_sources and self._is_missing(commit)

    def _is_missing(self, commit: Commit) -> bool:
        # By key, not by commit: a commit that replaces another one may have the same output.
        output = commit.output
        return output is not None and (output.bucket, output.key) in self.log.missing

    def require_rows(self, output: Output, *, stands: bool) -> None:
        """Check that the rows of an output that was added to the table are still there.

        Args:
            output: of a commit.
            stands: the output's object exists.

        Raises:
            IntegrityError: rows are missing, or nothing shows that they are there; the message says
                what removed them, if the table's history shows it.
            TransientStoreError: the table's metadata could not be read.
        """
        uri = f"s3://{output.bucket}/{output.key}"
        if self.contents is None:
            if stands:
                return
            raise IntegrityError(
                f"{uri} is missing, and {self.address} has one row of each key, which proves no"
                " records"
            )
        file = TableFile(output.bucket, output.key, output.size, output.records)
        fault = self.contents.fault_of(file)
        if fault:
            rows = "the rows" if output.records is None else f"the {output.records:,} rows"
            raise IntegrityError(
                f"{rows} of {uri} are not all in {self.address}, at {self._version}: {fault}"
            )
        if not stands and self.contents.names(file):
            raise IntegrityError(f"{uri} is missing, and {self.address} is made of it")

    @property
    def _version(self) -> str:
        return self.table.version if self.table is not None else ""


def look_at_table(
    settings: Settings,
    store: ObjectStore,
    open_catalog: OpenCatalog,
    known: MutableMapping[str, TableContents] | None = None,
) -> TableProof | None:
    """Return a destination's table and its log; None if it has no table.

    Args:
        settings: of the run. The log names the table, even if these settings do not.
        store: where the state is.
        open_catalog: opens the table.
        known: cache of the contents of the newest table version, updated here, so that its
            metadata is read once for all partitions.

    Raises:
        IntegrityError: the table or its log is not as it was.
        InvalidInput: reading the table is not permitted.
    """
    if not table_log_there(store, settings):
        return TableProof(settings.table, TableLogState(), None) if settings.table else None
    identity = read_identity(settings, store)
    if identity is None:
        raise IntegrityError(f"{settings.s3_state_uri} has a table log, and no identity")
    log = TableLog(store, settings, identity.log_id)
    state = log.load()
    catalog = open_catalog(as_begun(settings, state), store)
    table = catalog.load(identity.log_id)
    if table is not None and table.last > state.last:
        log.refresh(state)
    require_known(table, state, catalog.address)
    if table is None or state.upsert is not None:
        return TableProof(catalog.address, state, table)
    return TableProof(catalog.address, state, table, _contents(table, catalog, known))


def _contents(
    table: TableState, catalog: TableCatalog, known: MutableMapping[str, TableContents] | None
) -> TableContents:
    if known is None:
        return catalog.contents(table)
    name = f"{table.uuid} {table.version}"
    found = known.get(name)
    if found is None:
        # Keep one version only: the metadata of a large table takes much memory.
        known.clear()
        found = known.setdefault(name, catalog.contents(table))
    return found


def as_begun(settings: Settings, log: TableLogState) -> Settings:
    """Return the settings with the table and key that the log was started with."""
    key = log.upsert or UpsertKey(())
    return replace(
        settings,
        table=log.table,
        upsert_key=key.columns,
        order_by=key.order_by,
        delete_when=dict(key.delete_when) or None,
    )


def is_given(settings: Settings, store: ObjectStore, path: str, sequence: int) -> bool:
    """Return True when the table log names this commit's output, in the table or not.

    Raises:
        IntegrityError: the table log is damaged.
    """
    if not table_log_there(store, settings):
        return False
    identity = read_identity(settings, store)
    log_id = identity.log_id if identity is not None else ""
    return TableLog(store, settings, log_id).load().names(path, sequence)
