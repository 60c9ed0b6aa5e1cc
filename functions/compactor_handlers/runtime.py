"""Shared by the compaction handlers: deadline and store of a call, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock
from compactor.invocation import LambdaContext, LambdaDeadline, kept_store, logger, metrics
from compactor.ports import StoreTraits
from compactor.probe.probe import traits_for
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings

if TYPE_CHECKING:
    from compactor.cleaning.clean_up_receipts import CleanUpReceipt
    from compactor.partition.receipts import Counts
    from compactor.readers.outcome import Outcomes
    from compactor.registry.pending_listing import Marked


class WorkingTime(LambdaDeadline):
    """The deadline for beginning new work, which is earlier than the end of the invocation.

    Args:
        context: of the invocation, which has just begun.
        settings: ``limits.work_seconds`` is how long the invocation works.
    """

    def __init__(self, context: LambdaContext, settings: Settings) -> None:
        super().__init__(context)
        self._spared = max(0.0, super().remaining_seconds() - settings.limits.work_seconds)

    def remaining_seconds(self) -> float:
        """Return the seconds in which work may still begin."""
        return super().remaining_seconds() - self._spared


def store_for(settings: Settings, context: LambdaContext | None = None) -> S3Store:
    """Return the process's store. The endpoint is the one that boto3 finds in the environment.

    Args:
        settings: its limits bound concurrent reads and read-ahead.
        context: of the invocation, whose end bounds every wait of the store.
    """
    store = kept_store(settings.limits.reads, settings.limits.read_ahead_bytes)
    return store if context is None else store.within(LambdaDeadline(context))


def trusted_store(settings: Settings, context: LambdaContext) -> S3Store:
    """Return the store of a worker, with the traits that the run's probe found."""
    store = store_for(settings, context)
    place = (store.endpoint_url, settings.state.uri)
    now = SystemClock().now()
    at, traits = _known_traits.get(place, (0.0, store.traits))
    if not at <= now < at + _KNOWN_SECONDS:
        traits = traits_for(settings.state, store, now)
        _known_traits[place] = now, traits
    return store.with_traits(traits)


# Probe records that this process has read, and when (UNIX seconds): warm calls need no request.
_known_traits: dict[tuple[str, str], tuple[float, StoreTraits]] = {}
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
    """Add the metrics of one call, in CloudWatch's embedded metric format.

    Args:
        counts: of all calls for the partition in this run.
        earlier: of the calls before this one.
    """
    for name, unit, attribute in _FIGURES:
        value = getattr(counts, attribute) - getattr(earlier, attribute)
        metrics.add_metric(name=name, unit=unit, value=value)


def add_marked_metrics(marked: Marked) -> None:
    """Add the metrics of registered objects: compacted, gone, and seconds until queryable."""
    metrics.add_metric(name="MarkedObjects", unit=MetricUnit.Count, value=marked.compacted)
    metrics.add_metric(name="GoneObjects", unit=MetricUnit.Count, value=marked.gone)
    # One metric with many values, so that CloudWatch can compute percentiles.
    for age in marked.ages:
        metrics.add_metric(name="FreshnessSeconds", unit=MetricUnit.Seconds, value=age)


def report_clean_up(receipt: CleanUpReceipt, earlier: CleanUpReceipt) -> None:
    """Add the metrics of one clean-up call, and log its warnings.

    Args:
        receipt: of all calls for the partition in this run.
        earlier: of the calls before this one.
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
    """Add the metrics of the readers' table: partitions switched, and partitions out of date.

    Args:
        shown: of the whole run; None where there is no readers' table.
    """
    if shown is not None:
        counts = {"SwitchedPartitions": shown.switched, "UnshownPartitions": shown.faults}
        for name, count in counts.items():
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=count)
