"""What a run left on S3 for its report: work items, receipts, and the endings of its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from compactor import layout
from compactor.decoding import decoder
from compactor.discovery.work_items import WorkItem, elements_of, require_known_run
from compactor.errors import ObjectMissing
from compactor.log.resting import NONE_AT_REST, Resting
from compactor.model import Skipped
from compactor.ports import ObjectStore
from compactor.runs import partition_receipts as receipts
from compactor.runs.partition_receipts import Receipt
from compactor.settings.settings import Settings

#: Error of a partition whose worker ended without a final receipt.
LOST = "WorkerLost"
SPARK_ERROR_NAME = "spark-error.json"


class DiscoveryLine(msgspec.Struct, frozen=True):
    """What discovery found in addition to the work items."""

    unpartitioned: Skipped
    warnings: list[str] = []
    resting: Resting = NONE_AT_REST
    requests: dict[str, int] = {}


class SparkErrorLine(msgspec.Struct, frozen=True):
    """The Spark job's own account of its failure, as far as a report shows it."""

    error: str
    cause: str


_decode_discovery, _decode_spark_error = decoder(DiscoveryLine), decoder(SparkErrorLine)
_decode_item = decoder(WorkItem)


def spark_failure(ending: str, run_id: str, settings: Settings, store: ObjectStore) -> str:
    """Return why the Spark job failed, in its own words if any; empty if ``ending`` is."""
    if not ending:
        return ""
    try:
        body = store.get(*layout.run_key(settings, run_id, SPARK_ERROR_NAME))
        line = _decode_spark_error(body)
    except (ObjectMissing, msgspec.MsgspecError):
        # It never started, or was killed: EMR's message, often just Unknown Error, is all there is.
        return f"Spark: {ending}"
    return f"Spark: {line.error}: {line.cause}"


def work_items(
    settings: Settings, run_id: str, name: str, store: ObjectStore
) -> Iterator[WorkItem]:
    """Yield the items of a work list; none if discovery failed before it wrote any."""
    with suppress(ObjectMissing):
        for element in elements_of(store, *layout.run_key(settings, run_id, name)):
            yield _decode_item(element)


def receipt_of(item: WorkItem, run_id: str, settings: Settings, store: ObjectStore) -> Receipt:
    """Return the last receipt of a partition, or one that says that its worker was lost."""
    bucket, key = layout.receipt_key(settings, run_id, item.partition)
    try:
        receipt = receipts.decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        cause = "no receipt: the worker was lost before it could write one"
        return Receipt(item.path, run_id, "failed", error=LOST, cause=cause)
    if receipt.status == "more":
        receipt.error, receipt.cause = LOST, "the last receipt says that work was left"
    return receipt


def with_ending(receipt: Receipt, ending: str | None) -> Receipt:
    """Add to a receipt how the worker ended that should have written the last one."""
    if ending is None or receipt.status == "done":
        return receipt
    if receipt.error == LOST:
        receipt.cause += f": {ending}"
    else:
        # The error that an earlier attempt recorded is no longer how it ended.
        receipt.error, receipt.cause = LOST, ending
    return receipt


def discovered_by(settings: Settings, run_id: str, store: ObjectStore) -> DiscoveryLine:
    """Return what discovery left; empty if it failed before writing it.

    Raises:
        IntegrityError: a later version of this program wrote what the run left.
    """
    body = require_known_run(*layout.run_key(settings, run_id, ""), store)
    return _decode_discovery(body) if body else DiscoveryLine(Skipped(0, 0))
