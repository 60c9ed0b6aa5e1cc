"""Finds partitions whose rejects may fit today's columns, with or without sources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import msgspec

from compactor import layout
from compactor.discovery.parallel import Parallel
from compactor.discovery.work_items import Discovery, WorkItem
from compactor.errors import IntegrityError
from compactor.log.log import CommitLog
from compactor.log.rejects import schema_digest
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_REJECTS = re.compile(r"(.*)rejects/[^/]+", re.DOTALL)
_CONCURRENT = 16


def with_rejected(found: Discovery, settings: Settings, store: ObjectStore) -> Discovery:
    """Return a discovery with added partitions whose rejects were made for other columns.

    Their sources may be outside the window or deleted. The state is listed, which has fewer
    objects than the source, but only if converted outputs had other columns before.

    Args:
        found: partitions found by listing the source.
        settings: settings of the run.
        store: where the state is.
    """
    rejected = Rejected(settings, store)
    rejected.leave_out((*found.items, *found.oversized))
    more = tuple(rejected.items())
    if not more:
        return found
    if settings.all_on_spark:
        return msgspec.structs.replace(found, oversized=found.oversized + more)
    return msgspec.structs.replace(found, items=found.items + more)


class Rejected:
    """The partitions with rejects, except those that the run works on anyway.

    Args:
        settings: settings of the run.
        store: where the state is.
    """

    def __init__(self, settings: Settings, store: ObjectStore) -> None:
        self._settings, self._store = settings, store
        converts = settings.columnar and settings.format != "parquet"
        self._columns = _columns_of_today(settings, store) if converts else ""
        self._paths = _with_rejects(settings, store) if self._columns else set()

    def leave_out(self, items: Iterable[WorkItem]) -> None:
        """Exclude partitions that the run works on anyway."""
        if self._paths:
            self._paths.difference_update(item.path for item in items)

    def items(self) -> list[WorkItem]:
        """Return the remaining partitions whose rejects were made for other columns."""
        with Parallel(_CONCURRENT) as parallel:
            asked = parallel.in_order(self._waiting, sorted(self._paths))
            return [item for item in asked if item is not None]

    def _waiting(self, path: str) -> WorkItem | None:
        partition = layout.partition_at(self._settings, path)
        item = WorkItem(path, partition.bucket, partition.prefix, 0, 0)
        try:
            state = CommitLog(self._store, self._settings, partition).load()
        except IntegrityError:
            # Make it a work item, so that its own worker reports the error.
            return item
        differ = (one.schema != self._columns for one in state.rejects.in_order)
        return item if any(differ) else None


def _columns_of_today(settings: Settings, store: ObjectStore) -> str:
    """Return the digest of the pinned columns; empty if no others were pinned before."""
    bucket, prefix = layout.parquet_schemas_prefix(settings)
    keys = [one.key for page in store.list_objects(bucket, prefix) for one in page]
    if len(keys) < 2:
        return ""
    schema = json.loads(store.get(bucket, max(keys)))["schema"]
    # In the form in which a commit has the columns.
    return schema_digest(json.dumps(schema, separators=(",", ":"), sort_keys=True))


def _with_rejects(settings: Settings, store: ObjectStore) -> set[str]:
    state = settings.state
    start = len(state.prefix + layout.PARTITIONS)
    matches = (
        _REJECTS.fullmatch(one.key, start)
        for page in store.list_objects(state.bucket, state.prefix + layout.PARTITIONS)
        for one in page
    )
    return {match[1] for match in matches if match is not None}
