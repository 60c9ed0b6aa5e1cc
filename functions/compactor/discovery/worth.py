"""Decides whether compaction pays, and leaves partitions alone if it does not.

A partition is judged by its first window with anything to do: what it adds to a run (requests, its
share of a function's time, transitions) and what both copies cost. If that pays, or if the run has
already committed something in the partition, the run compacts the whole partition. Otherwise
every source of the window is left as it is, and counted as skipped. Nothing is written, so the
next run judges the same sources again, together with what arrived meanwhile.
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
from compactor.money.shapes import DAY_SECONDS
from compactor.planning.query_seconds import outputs_of
from compactor.ports import ObjectStore
from compactor.prices import Prices, prices_for
from compactor.settings.settings import CleanUpMode, Settings


def judged(
    plans: Sequence[CompactionPlan],
    settings: Settings,
    run: RunWork,
    prices: Prices,
    *,
    now: float,
    oversized: Sequence[WorkItem] = (),
) -> Verdict:
    """Return the verdict on a run's plans.

    Args:
        plans: plans of all partitions that workers take.
        settings: settings of the run.
        run: what the run requests from AWS.
        prices: prices of the region.
        now: UNIX seconds; how soon S3 allows sources to be deleted without a charge depends on it.
        oversized: partitions for Spark, if the settings have an engine. They are at least as large
            as counted.
    """
    groups = [group for plan in plans for group in plan.groups]
    kept = settings.clean_up is not CleanUpMode.DELETE
    deleted_at = None if kept else now + settings.retention_days * DAY_SECONDS
    sources = (source for group in groups for source in group.sources)
    before = Shape.of_sources(sources, deleted_at)
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
        settings: settings of the run; without ``pays_back_within_days`` nothing is judged.
        store: the store whose region determines the prices.
        begun: the run has already committed something in the partition.
    """

    def __init__(self, settings: Settings, store: ObjectStore, *, begun: bool = False) -> None:
        self._settings = settings
        self._store = store
        self._pays = begun

    def of(self, plan: CompactionPlan, now: float) -> CompactionPlan:
        """Return the plan, without its groups if their compaction would not pay in time."""
        days = self._settings.pays_back_within_days
        if days is None or self._pays or not plan.groups:
            return plan
        run = alone(plan, self._settings)
        found = judged([plan], self._settings, run, prices_for(self._store.region), now=now)
        self._pays = found.pays_within(days)
        return plan if self._pays else _left(plan)


def _left(plan: CompactionPlan) -> CompactionPlan:
    sources = [source for group in plan.groups for source in group.sources]
    keys = tuple(source.key for source in sources[:SHOWN_EXAMPLES])
    left = Skipped(len(sources), sum(source.size for source in sources), keys)
    return replace(plan, groups=(), skipped={**plan.skipped, SkipReason.DOES_NOT_PAY: left})
