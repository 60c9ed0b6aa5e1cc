"""Whether compaction pays: the verdict of plans, and partitions that are left because it does not.

A partition is judged by its first window with anything to do, with what it adds to a run (its
requests, its share of a function's time, its transitions) and what both copies cost. Where that
pays, and where the run has committed anything in it before, the run sees the partition through;
else every source of the window is left as it is, and counted as skipped. Nothing is written, so
that the same sources are judged again by the next run, together with what arrived meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from compactor.discovery.estimate import alone
from compactor.discovery.work_items import WorkItem
from compactor.encoding.output_encoding import packing_class, stored_bytes, target_bytes
from compactor.model import (
    SHOWN_EXAMPLES,
    CompactionPlan,
    Compression,
    ObjectGroup,
    Skipped,
    SkipReason,
)
from compactor.money import RunWork, Shape, Verdict, verdict
from compactor.planning.query_seconds import outputs_of
from compactor.ports import ObjectStore
from compactor.prices import Prices, prices_for
from compactor.settings.settings import CleanUpMode, Settings


def judged(
    plans: Sequence[CompactionPlan],
    settings: Settings,
    run: RunWork,
    prices: Prices,
    oversized: Sequence[WorkItem] = (),
) -> Verdict:
    """The verdict of what is planned.

    Args:
        plans: of every partition that a worker takes.
        settings: of the run.
        run: what it asks of AWS.
        prices: of the region.
        oversized: what goes to Spark, where the settings have one: at least as large as counted.
    """
    groups = [group for plan in plans for group in plan.groups]
    before = Shape.of_sources(source for group in groups for source in group.sources)
    after = Shape.of(
        (_stored(group, settings) for group in groups), parts=outputs_of(groups, settings).parts
    )
    if settings.spark_engine != "none":
        for item in oversized:
            objects = max(1, item.objects)
            before += Shape.alike(objects, item.bytes // objects)
            target = target_bytes(settings, Compression.GZIP)
            outputs = max(1, math.ceil(item.bytes / target))
            after += Shape.alike(outputs, item.bytes // outputs)
    kept = settings.clean_up is not CleanUpMode.DELETE
    return verdict(
        before,
        after,
        run,
        prices,
        settings.scans_per_month,
        target_class=settings.target_class,
        retention_days=None if kept else settings.retention_days,
    )


def _stored(group: ObjectGroup, settings: Settings) -> int:
    source = packing_class(group.sources[0].key).compression
    output = group.form.encoding_of(source)
    return math.ceil(stored_bytes(group.size, source, output))


class Worth:
    """Judges the windows of one partition.

    Args:
        settings: of the run; without ``pays_back_within_days`` nothing is judged.
        store: whose region's prices count.
        begun: the run has committed something in the partition before.
    """

    def __init__(self, settings: Settings, store: ObjectStore, *, begun: bool = False) -> None:
        self._settings = settings
        self._store = store
        self._pays = begun

    def of(self, plan: CompactionPlan) -> CompactionPlan:
        """The plan; without groups where their compaction would not pay in time."""
        days = self._settings.pays_back_within_days
        if days is None or self._pays or not plan.groups:
            return plan
        run = alone(plan, self._settings)
        found = judged([plan], self._settings, run, prices_for(self._store.region))
        self._pays = found.pays_within(days)
        return plan if self._pays else _left(plan)


def _left(plan: CompactionPlan) -> CompactionPlan:
    sources = [source for group in plan.groups for source in group.sources]
    keys = tuple(source.key for source in sources[:SHOWN_EXAMPLES])
    left = Skipped(len(sources), sum(source.size for source in sources), keys)
    return replace(plan, groups=(), skipped={**plan.skipped, SkipReason.DOES_NOT_PAY: left})
