"""Estimates what a run will request from AWS, from the requests of its plan and its groups. Pure.

A plan makes the listings that its run makes: discovery lists prefixes, and each partition is
listed once. So those requests are counted, not estimated. The other requests were counted on runs
of each kind (``tests/e2e/test_money.py`` counts them again):

- each source: one GET per 8 MiB; none if S3 copies it
- each output: begin, parts, end and commit, all PUTs; a HEAD if it was copied
- each partition: its receipt; with groups, a LIST of outputs, a GET and a checkpoint
- the run: its lists, settings, report and history, and their reads

The content of sources may split a group further than the plan does, and sources that a run leaves
alone were read before. Clean-up is not included: deletes are free, and its other requests are few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from compactor.encoding.output_encoding import packing_class, stored_bytes
from compactor.formats import SPECS
from compactor.limits import WORKER_MB
from compactor.model import CompactionPlan, Compression, ObjectGroup, Skipped
from compactor.money.run_cost import TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN, RunWork
from compactor.settings.settings import Settings
from compactor.sizes import GET_BYTES

_MB_PER_GB = 1024
# Discovery and the report, together.
_BESIDE_SECONDS, _BESIDE_CALLS = 4.0, 2
# About ten sequential requests to S3 of 100 to 200 ms each ("Best practices design patterns:
# optimizing Amazon S3 performance" in its user guide).
PARTITION_SECONDS = 1.5
# A driver and an executor of 4 vCPUs and 16 GB each, which take a minute and a half to start.
_SPARK_VCPUS, _GB_PER_VCPU, _SPARK_START_SECONDS = 8, 4, 90.0
_PROCESSORS = 2
# Two batches for each worker: a child costs as much as 20 LISTs. The counts of a batch are passed
# from call to call in the workflow's state.
_BATCHES_PER_WORKER, _MOST_OF_A_BATCH = 2, 100


class WorkerSpeed(NamedTuple):
    """Seconds of a worker with two processors, at 25 ms to the first byte of every answer.

    ``make bench ARGS=worker`` prints them, solved from two data sets for each format and rounded
    up.

    Attributes:
        per_million_objects: for a million objects, whatever their size.
        per_gb: for each 10**9 stored bytes of sources in addition.
    """

    per_million_objects: float
    per_gb: float

    def seconds(self, objects: int, size: int) -> float:
        """Return the seconds for ``objects`` objects of ``size`` bytes in all."""
        return (self.per_million_objects * objects + self.per_gb * size / 1_000) / 1e6


LINES, LINES_GZIP, CLOUDTRAIL_GZIP = "lines", "lines, gzip", "CloudTrail, gzip"
# Outputs that hold rows.
ROWS, ROWS_GZIP, ROWS_PARQUET = "JSON to rows", "JSON to rows, gzip", "Parquet"
SPEEDS: Mapping[str, WorkerSpeed] = {
    LINES: WorkerSpeed(141, 7),
    LINES_GZIP: WorkerSpeed(153, 45),
    CLOUDTRAIL_GZIP: WorkerSpeed(245, 46),
    ROWS: WorkerSpeed(167, 28),
    ROWS_GZIP: WorkerSpeed(71, 163),
    ROWS_PARQUET: WorkerSpeed(1137, 37),
}
_WHOLE = frozenset(spec.hint for spec in SPECS if spec.whole)

_RUN = Counter(GET=5, HEAD=1, PUT=6)
_PARTITION = Counter(PUT=1)
_WORKED_ON = Counter(LIST=1, GET=1, PUT=1)
# Begin and end of an upload, and the commit. Parts are counted separately.
_OUTPUT = Counter(PUT=3)
# The report of a deployed run reads each receipt; a local run has them in memory.
_DEPLOYED_PARTITION = Counter(GET=1)


def expected(
    plans: Sequence[CompactionPlan],
    settings: Settings,
    looked: Mapping[str, int],
    beyond: Sequence[tuple[CompactionPlan, Skipped]] = (),
    *,
    deployed: bool = True,
) -> RunWork:
    """Estimate what a run will request from AWS.

    Args:
        plans: plans of all partitions.
        settings: settings of the run.
        looked: requests made for the plans, including discovery, by kind.
        beyond: partitions with more than a worker takes, and the least that Spark takes of each.
        deployed: the state machine executes the run.
    """
    requests = Counter({name: count for name, count in looked.items() if "bytes" not in name})
    requests += _RUN
    for plan in plans:
        requests += _of_partition(plan, settings, deployed=deployed)
    left = list(beyond) if settings.spark_engine != "none" else []
    for _, more in left:
        requests += Counter(GET=more.objects) + _PARTITION + _WORKED_ON + _OUTPUT
    compute = RunWork()
    if deployed:
        seconds = sum(_seconds(plan, settings) for plan in plans)
        compute = of_functions(len(plans), seconds, settings)
    hours = 0.0
    if left:
        seconds = sum(_spark_seconds(plan, more, settings) for plan, more in left)
        hours = (seconds * _PROCESSORS + _SPARK_START_SECONDS * _SPARK_VCPUS) / 3_600
    return compute + RunWork(dict(requests), vcpu_hours=hours, gb_hours=hours * _GB_PER_VCPU)


def of_numbers(partitions: int, outputs: int, sources: int, parts: float) -> Counter[str]:
    """Estimate the requests for the partitions of a deployed run, without listings.

    Args:
        partitions: number of partitions with something to do.
        outputs: number of their outputs.
        sources: number of sources that are read.
        parts: approximate number of upload parts; each output has at least one.
    """
    found = Counter(GET=sources, PUT=math.ceil(max(parts, outputs)))
    each = _PARTITION + _DEPLOYED_PARTITION + _WORKED_ON
    for counts, times in ((each, partitions), (_OUTPUT, outputs)):
        for kind, count in counts.items():
            found[kind] += count * times
    return found


def of_functions(partitions: int, seconds: float, settings: Settings) -> RunWork:
    """Estimate the use of Lambda and Step Functions.

    Args:
        partitions: number of partitions.
        seconds: total time that functions of the usual memory work on them.
        settings: settings of the run.
    """
    children = math.ceil(partitions / batch_partitions(partitions, settings.max_concurrency))
    return RunWork(
        gb_seconds=(_BESIDE_SECONDS + seconds) * WORKER_MB / _MB_PER_GB,
        invocations=children + _BESIDE_CALLS,
        transitions=TRANSITIONS_PER_RUN + TRANSITIONS_PER_CHILD * children,
    )


def speed_for(key: str, settings: Settings) -> WorkerSpeed:
    """Return the speed for objects with keys like this one; CSV and text count as lines.

    zstd counts as gzip, which takes longer. Documents that are parsed whole, and CloudTrail without
    gzip, count as CloudTrail with gzip. In rows, all formats but Parquet count as JSON.
    """
    of_key = packing_class(key)
    is_plain = of_key.compression is Compression.NONE
    if settings.merges(key):
        return SPEEDS[ROWS_PARQUET]
    if settings.converts:
        return SPEEDS[ROWS if is_plain else ROWS_GZIP]
    if of_key.kind in _WHOLE:
        return SPEEDS[CLOUDTRAIL_GZIP]
    return SPEEDS[LINES if is_plain else LINES_GZIP]


def batch_partitions(partitions: int, max_concurrency: int) -> int:
    """Return how many partitions one child execution works on, sequentially; at least 1."""
    fair = partitions // (_BATCHES_PER_WORKER * max_concurrency)
    return max(1, min(fair, _MOST_OF_A_BATCH))


def after_receipt(*, committed: bool) -> Counter[str]:
    """Return a worker's requests after the counts of its receipt, including the receipt itself."""
    return _PARTITION + Counter(PUT=int(committed))


def _of_partition(plan: CompactionPlan, settings: Settings, *, deployed: bool) -> Counter[str]:
    found = Counter(_PARTITION)
    if deployed:
        found += _DEPLOYED_PARTITION
    if plan.groups:
        found += _WORKED_ON
    for group in plan.groups:
        found += _of_group(group, settings)
    return found


def _of_group(group: ObjectGroup, settings: Settings) -> Counter[str]:
    limits = settings.limits
    if group.copy:
        parts = math.ceil(group.size / limits.copy_part_bytes)
        return _OUTPUT + Counter(PUT=max(1, parts), HEAD=1)
    kind = packing_class(group.sources[0].key).compression
    gets = sum(max(1, math.ceil(one.size / GET_BYTES)) for one in group.sources)
    written = stored_bytes(group.size, kind, group.form.encoding_of(kind))
    return _OUTPUT + Counter(GET=gets, PUT=max(1, math.ceil(written / limits.part_bytes)))


def _seconds(plan: CompactionPlan, settings: Settings) -> float:
    """Return the seconds that a worker takes for a partition; S3 copies large sources."""
    seconds = PARTITION_SECONDS
    for group in plan.groups:
        if not group.copy:
            speed = speed_for(group.sources[0].key, settings)
            seconds += speed.seconds(len(group.sources), group.size)
    return seconds


def _spark_seconds(plan: CompactionPlan, more: Skipped, settings: Settings) -> float:
    groups = plan.groups
    key = groups[0].sources[0].key if groups else plan.partition.prefix
    return speed_for(key, settings).seconds(more.objects, more.bytes)
