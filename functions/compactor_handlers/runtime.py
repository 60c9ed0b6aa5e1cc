"""What the handlers of compaction share: the store of a run, and the metrics of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock
from compactor.conditions import StoreTraits
from compactor.invocation import LambdaContext, LambdaDeadline, kept_store, logger, metrics
from compactor.probe.probe import traits_for
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings

if TYPE_CHECKING:
    from compactor.cleaning.clean_up_receipts import CleanUpReceipt
    from compactor.cleaning.expiry import Expiry
    from compactor.readers.outcome import Outcomes
    from compactor.registry.pending_listing import Marked
    from compactor.runs.partition_receipts import Counts


class WorkingTime(LambdaDeadline):
    """The end of the time in which an invocation begins work; Lambda's own end comes later.

    Args:
        context: of the invocation, just begun.
        settings: whose limits say how long it works.
    """

    def __init__(self, context: LambdaContext, settings: Settings) -> None:
        super().__init__(context)
        self._spared = max(0.0, super().remaining_seconds() - settings.limits.work_seconds)

    def remaining_seconds(self) -> float:
        """Seconds of work that are left."""
        return super().remaining_seconds() - self._spared


def store_for(settings: Settings, context: LambdaContext | None = None) -> S3Store:
    """The store of this process; the endpoint comes from the environment, as boto3 finds it.

    Args:
        settings: how much is read at the same time.
        context: of the invocation, beyond whose end the store shall wait for nothing.
    """
    store = kept_store(settings.limits.reads, settings.limits.read_ahead_bytes)
    return store if context is None else store.within(LambdaDeadline(context))


def trusted_store(settings: Settings, context: LambdaContext, *, deletes: bool = False) -> S3Store:
    """The store for a worker, taking the ways that the probe of its run found to be safe.

    Args:
        settings: of the run.
        context: of the invocation.
        deletes: sources will be deleted through it.
    """
    store = store_for(settings, context)
    place = (store.endpoint_url, settings.state.uri, deletes)
    now = SystemClock().now()
    at, traits = _known_traits.get(place, (0.0, store.traits))
    if not at <= now < at + _KNOWN_SECONDS:
        traits = traits_for(settings.state, store, now, deletes=deletes)
        _known_traits[place] = now, traits
    return store.with_traits(traits)


# What this process read of the records of probes, so that warm calls ask for none; UNIX seconds.
_known_traits: dict[tuple[str, str, bool], tuple[float, StoreTraits]] = {}
_KNOWN_SECONDS = 600.0


_FIGURES = (
    ("ObjectsIn", MetricUnit.Count, "objects_in"),
    ("ObjectsOut", MetricUnit.Count, "objects_out"),
    ("Groups", MetricUnit.Count, "objects_out"),
    ("Conflicts", MetricUnit.Count, "conflicts"),
    ("QuarantinedObjects", MetricUnit.Count, "quarantined"),
    ("BytesIn", MetricUnit.Bytes, "bytes_in"),
    ("BytesOut", MetricUnit.Bytes, "bytes_out"),
    ("Seconds", MetricUnit.Seconds, "seconds"),
)


def add_partition_metrics(counts: Counts, earlier: Counts) -> None:
    """Numbers of one call, in CloudWatch's embedded metric format.

    Args:
        counts: of all calls for the partition in this run.
        earlier: of those before this one.
    """
    for name, unit, attribute in _FIGURES:
        value = getattr(counts, attribute) - getattr(earlier, attribute)
        metrics.add_metric(name=name, unit=unit, value=value)


def add_marked_metrics(marked: Marked) -> None:
    """What became of objects known by events, and how long it took until they could be queried."""
    metrics.add_metric(name="MarkedObjects", unit=MetricUnit.Count, value=marked.compacted)
    metrics.add_metric(name="GoneObjects", unit=MetricUnit.Count, value=marked.gone)
    # One metric with many values: CloudWatch makes percentiles of them.
    for age in marked.ages:
        metrics.add_metric(name="FreshnessSeconds", unit=MetricUnit.Seconds, value=age)


def report_clean_up(receipt: CleanUpReceipt, earlier: CleanUpReceipt) -> None:
    """Numbers and lines of one call of clean-up.

    Args:
        receipt: of all calls for the partition in this run.
        earlier: of those before this one.
    """
    for name, now, before in (
        ("DeletedSources", receipt.counts.deleted, earlier.counts.deleted),
        ("RefusedSources", receipt.counts.refused, earlier.counts.refused),
        ("UnsafeCommits", len(receipt.unsafe), len(earlier.unsafe)),
    ):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=now - before)
    for line in receipt.unsafe[len(earlier.unsafe) :]:
        logger.error("kept the sources of a commit", reason=line)
    for line in receipt.warnings[len(earlier.warnings) :]:
        logger.warning(line, path=receipt.path)
    logger.info("cleaned up", path=receipt.path, status=receipt.status)


def report_readers(shown: Outcomes | None) -> None:
    """How many partitions query engines see updated, and how many they do not see as they are.

    Args:
        shown: of a whole run; None where no table shows them.
    """
    if shown is not None:
        counts = {"SwitchedPartitions": shown.switched, "UnshownPartitions": shown.faults}
        for name, count in counts.items():
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=count)


def report_expiry(expiry: Expiry) -> None:
    """How many files of the state were dropped, and why the rest of them was not."""
    metrics.add_metric(name="ExpiredStateObjects", unit=MetricUnit.Count, value=expiry.objects)
    if expiry.fault:
        logger.warning("old files of the state stay until the next run", reason=expiry.fault)
    logger.info("dropped old files of the state", objects=expiry.objects)
