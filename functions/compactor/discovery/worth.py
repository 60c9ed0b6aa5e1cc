"""What a planned run costs and saves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compactor.discovery.work_items import WorkItem
from compactor.encoding.output_encoding import packing_class, stored_bytes, target_bytes
from compactor.model import CompactionPlan, Compression, ObjectGroup
from compactor.money import RunWork, Shape, Verdict, verdict
from compactor.money.shapes import DAY_SECONDS
from compactor.planning.query_seconds import outputs_of
from compactor.prices import Prices
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
