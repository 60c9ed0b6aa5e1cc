"""Wrong orders of writes to the readers' table, which runs and refreshes must never use."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.model import Partition, SourceObject
from compactor.partition.work import PartitionWork
from compactor.ports import ObjectStore
from compactor.readers import partition_view as look
from compactor.readers import refresh
from compactor.readers.refresh import Refreshing
from compactor.readers.states import Held
from compactor.readers.switch_records import read_marker
from compactor.settings.settings import Settings


def deleting_before_the_switch(patch: pytest.MonkeyPatch, between_seconds: float = 0.0) -> None:
    """Delete sources once outputs have their records, and only then show the outputs.

    Args:
        patch: changes the product.
        between_seconds: seconds between the two, if time is real.
    """
    switch = refresh._switch

    def deletes_first(ready: Sequence[refresh._Work], work: Refreshing) -> None:
        for one in ready:
            held = CommitLog(work.store, work.settings, one.partition).load().committed
            pages = list(work.store.list_objects(one.partition.bucket, one.partition.prefix))
            doubled = [source for page in pages for source in page if source.identity in held]
            work.store.delete_sources(doubled)
        time.sleep(between_seconds)
        switch(ready, work)

    patch.setattr(refresh, "_switch", deletes_first)


def switching_before_the_commit(patch: pytest.MonkeyPatch, between_seconds: float = 0.0) -> None:
    """Show an output in the catalog before it is committed and published.

    Args:
        patch: changes the product.
        between_seconds: seconds between the two, if time is real.
    """
    looked, commit = look.look, PartitionWork.commit
    mine = threading.local()

    def as_if_committed(
        settings: Settings,
        partition: Partition,
        store: ObjectStore,
        now: float,
    ) -> Held:
        held = looked(settings, partition, store, now)
        draft: Commit | None = getattr(mine, "draft", None)
        if draft is None or draft.output is None:
            return held
        names = {row.source.key for row in draft.rows}
        made = draft.output
        output = SourceObject(made.bucket, made.key, "", made.size, last_modified=now)
        return replace(
            held,
            loose=tuple(one for one in held.loose if one.key not in names),
            outputs=(*held.outputs, output),
        )

    def switches_first(work: PartitionWork, draft: Commit) -> Commit:
        run = work.run
        marker = read_marker(run.settings.state, run.store)
        if marker is not None:
            mine.draft = draft
            try:
                settings = marker.divided(run.settings)
                readers = run.readers(marker.table)
                refreshing = Refreshing(settings, run.store, run.clock, readers)
                refresh.refresh([run.partition.path], refreshing)
            finally:
                mine.draft = None
            time.sleep(between_seconds)
        return commit(work, draft)

    patch.setattr(refresh, "look", as_if_committed)
    patch.setattr(PartitionWork, "commit", switches_first)
