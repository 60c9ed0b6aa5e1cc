"""Whether the table has an output: what is asked before anything is done without that output.

An output that the table was given is the table's own from then on: compaction of the table writes
its rows to other files, and expiry of its snapshots deletes it. So an output that is gone counts as
safe while its entry is in the table and the table has as many rows as it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from compactor.errors import IntegrityError
from compactor.log.entries import Commit
from compactor.log.identity import read_identity
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.tables.checks import require_known
from compactor.tables.entries import TableLogState
from compactor.tables.log import TableLog, table_log_there
from compactor.tables.port import TableCatalog, TableState
from compactor.tables.upserts import UpsertKey

#: Opens the table that these settings name.
OpenCatalog = Callable[[Settings, ObjectStore], TableCatalog]


@dataclass(frozen=True, slots=True)
class TableProof:
    """A table and its log, as they were at one moment.

    Attributes:
        address: of the table.
        table: None before it was given anything.
    """

    address: str
    log: TableLogState
    table: TableState | None

    def has(self, path: str, commit: Commit) -> bool:
        """True when the output of this commit is in the table."""
        if self.table is None or self._is_missing(commit):
            return False
        return self.log.is_in(path, commit.sequence, self.table.last)

    def releases(self, commit: Commit) -> bool:
        """True when an operator accepted that the table lacks the output, and lets sources go."""
        return self.log.releases_sources and self._is_missing(commit)

    def _is_missing(self, commit: Commit) -> bool:
        # By its key: a commit that replaces another one may have the same output.
        output = commit.output
        return output is not None and (output.bucket, output.key) in self.log.missing

    def require_rows(self) -> str:
        """Make sure that the table has as many rows as it was given.

        Returns:
            The evidence, in a few words.

        Raises:
            IntegrityError: it has fewer, or nobody knows.
        """
        if self.log.upsert is not None:
            raise IntegrityError(
                f"{self.address} has one row of each key, and so no count that proves records"
            )
        rows = self.table.rows if self.table is not None else None
        if self.log.uncounted:
            raise IntegrityError(
                f"{self.address} was given {self.log.uncounted:,} outputs whose rows nobody counted"
            )
        if rows is None:
            raise IntegrityError(f"{self.address} does not tell how many rows it has")
        if rows < self.log.rows:
            raise IntegrityError(
                f"{self.address} has {rows:,} rows, and was given {self.log.rows:,}: some were"
                " deleted, or it was rolled back"
            )
        return f"{self.address} has {rows:,} rows, and was given {self.log.rows:,}"


def look_at_table(
    settings: Settings, store: ObjectStore, open_catalog: OpenCatalog
) -> TableProof | None:
    """The table of a destination; None where it has none.

    Args:
        settings: of the run; whether they name the table or not, its log does.
        store: where the state is.
        open_catalog: opens the table.

    Raises:
        IntegrityError: the table, or its log, is not what it was.
        InvalidInput: the table may not be read.
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
    return TableProof(catalog.address, state, table)


def as_begun(settings: Settings, log: TableLogState) -> Settings:
    """The settings, with the table that the log is about."""
    key = log.upsert or UpsertKey(())
    return replace(
        settings,
        table=log.table,
        upsert_key=key.columns,
        order_by=key.order_by,
        delete_when=dict(key.delete_when) or None,
    )


def is_given(settings: Settings, store: ObjectStore, path: str, sequence: int) -> bool:
    """True when the table log names the output of this commit, whether it is in the table or not.

    Raises:
        IntegrityError: the table log is not what it was.
    """
    if not table_log_there(store, settings):
        return False
    identity = read_identity(settings, store)
    log_id = identity.log_id if identity is not None else ""
    return TableLog(store, settings, log_id).load().names(path, sequence)
