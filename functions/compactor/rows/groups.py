"""Stores and verifies the rows of one group, before its commit: by merge or convert."""

from __future__ import annotations

from compactor.destination import Destination
from compactor.model import ObjectGroup
from compactor.outputs.group import dropping
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.outputs.verify import check_pending
from compactor.ports import ObjectStore
from compactor.rows.convert import Given, convert
from compactor.rows.merge import merge
from compactor.settings.settings import Settings


def store_rows(
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
) -> PendingOutput:
    """Do steps 1 to 3 of the write order for one group whose output holds rows.

    Args:
        group: to be compacted.
        settings: of the run.
        store: of sources and output.
        destination: of the partition's outputs.
        time: for reading; sources that do not fit into it are left to the next plan.

    Raises:
        InvalidInput: the given schema is invalid, or no record fits it.
        SourceChanged: a source differs from the listing; nothing was written.
        NothingReadable: this role can read none of many sources.
        IntegrityError: the rows written are not the rows read; what was stored is dropped.
        TransientStoreError: the store did not answer; what was stored is dropped, if possible.
    """
    given = Given(group, settings, store, destination, time)
    pending = merge(given) if settings.merges(group.sources[0].key) else convert(given)
    with dropping(pending.output, store):
        check_pending(pending)
    return pending
