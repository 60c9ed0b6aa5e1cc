"""The objects of a Delta table, and the tagging of superseded ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from compactor.errors import InvalidInput
from compactor.model import SourceObject
from compactor.ports import ObjectStore, TaggedStore
from compactor.settings.tables import DELTA, TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor.table_formats.delta_log import LOG, DeltaLog
from compactor_tables.maintenance_receipts import MaintenanceReceipt
from compactor_tables.policies import Rule
from compactor_tables.superseded import Live, SupersededFiles, Tagging

_VERSION = re.compile(r"\d{20}\.json")
_ABSOLUTE = re.compile(r"s3[an]?://([^/]+)/(.*)", re.DOTALL)


def superseded_files(state: S3Uri, table: TableAddress, store: TaggedStore) -> SupersededFiles:
    """Return the superseded files of a Delta table.

    Args:
        state: of the maintenance runs.
        table: its address.
        store: where both lie.
    """
    return SupersededFiles(state, table, store, DeltaFiles(table, store))


def mark_superseded(
    state: S3Uri, receipt: MaintenanceReceipt, rule: Rule, store: TaggedStore
) -> Tagging | None:
    """Tag the files that a run's rewrite of a table replaced, if its rule asks for it.

    Safe to repeat.

    Args:
        state: of the run.
        receipt: of the run, for the table.
        rule: for the table.
        store: where state and table lie.

    Returns:
        The result; None if the table is not of Delta, or its rule asks for no tags.

    Raises:
        IntegrityError: a list of earlier runs, or the table's log, is damaged.
        TransientStoreError: the store did not answer.
    """
    table = parse_table(receipt.table)
    if table.kind != DELTA or not rule.tag_superseded:
        return None
    files = superseded_files(state, table, store)
    tag = files.tag(receipt)
    if receipt.deleted_files:
        files.forget_vacuumed()
    return tag


class DeltaFiles:
    """Implements :class:`compactor_tables.superseded.TableFiles`.

    The log is listed each time, and replayed only if its newest entry has changed.

    Args:
        table: its address.
        store: where its log lies.
    """

    def __init__(self, table: TableAddress, store: ObjectStore) -> None:
        location = table.location
        if location is None:
            raise InvalidInput("table", table.text, "a Delta table, delta:s3://bucket/prefix/")
        self._location: S3Uri = location
        self._store = store
        self._seen: SourceObject | None = None
        self._live = Live(-1, frozenset())

    def current(self) -> Live:
        newest = self._newest()
        # Compared with its ETag, because a table may be dropped and created again in one location.
        if newest is None or newest != self._seen:
            state = DeltaLog(self._location, self._store).load()
            self._live = Live(state.version, frozenset(self._keys(one for one, _ in state.files)))
            self._seen = newest
        return self._live

    def _newest(self) -> SourceObject | None:
        place = self._location
        found = None
        for page in self._store.list_objects(place.bucket, place.prefix + LOG):
            for one in page:
                if _VERSION.fullmatch(one.key, len(place.prefix + LOG)):
                    found = one
        return found

    def _keys(self, paths: Iterable[str]) -> Iterator[str]:
        """Return the keys of paths in the log, both as percent-encoded URIs and as plain keys.

        The protocol prescribes URIs; files in other buckets are left out.
        """
        place = self._location
        for path in paths:
            for text in {path, unquote(path)}:
                absolute = _ABSOLUTE.fullmatch(text)
                if absolute is None:
                    yield place.prefix + text
                elif absolute[1] == place.bucket:
                    yield absolute[2]
