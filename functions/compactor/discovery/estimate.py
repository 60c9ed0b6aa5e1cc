"""Estimates what a run will request from AWS, from the requests of its plan and its groups. Pure.

A plan makes the listings that its run makes, so those requests are counted, not estimated. The
other requests were counted on runs of each kind (``tests/e2e/test_money.py`` counts them again):

- each source: one GET per 8 MiB; none if S3 copies it
- each output: begin, parts, end, commit and the commit's witness, all PUTs; a HEAD if it was copied
- each partition: a LIST of its log at the end, its receipt and its record of rest; with groups,
  another LIST, a GET and a checkpoint
- the run: its lists, settings, report and history, and their reads

The content of sources may split a group further than the plan does, and sources that a run leaves
alone were read before. Clean-up is not included: deletes are free, and its other requests are few.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from compactor.discovery.fleet import PARTITION_SECONDS, USUAL_WORKER_MB, Fleet, processors_of
from compactor.discovery.speed import MEASURED_PROCESSORS, WorkerSpeed, speed_for
from compactor.discovery.work_items import Largest, WorkItem
from compactor.encoding.output_encoding import packing_class, stored_bytes
from compactor.model import CompactionPlan, ObjectGroup
from compactor.money import TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN, RunWork
from compactor.settings.settings import Settings
from compactor.sizes import GET_BYTES

#: A partition is listed twice: by discovery, and by the worker that compacts it.
PASSES = 2
_MB_PER_GB = 1024
# Discovery and the report, together.
_BESIDE_SECONDS, _BESIDE_CALLS = 4.0, 2
# A driver and an executor of 4 vCPUs and 16 GB each, which take a minute and a half to start.
_SPARK_VCPUS, _GB_PER_VCPU, _SPARK_START_SECONDS = 8, 4, 90.0

_RUN = Counter(GET=5, HEAD=1, PUT=6)
_PARTITION = Counter(LIST=1, PUT=2)
_WORKED_ON = Counter(LIST=1, GET=1, PUT=1)
# Begin and end of an upload, commit and witness. Parts are counted separately.
_OUTPUT = Counter(PUT=4)
# If nothing was ever committed, the first commit founds the destination. Without one, a partition
# with nothing to do requests an object that does not exist yet.
_FOUNDED = Counter(LIST=3, PUT=2)
_UNFOUNDED_REST = Counter(GET=1)
# A worker that finds no log for a partition checks, once, that it did not get lost.
_NEW_LOG = Counter(GET=1, LIST=1)
# The report of a deployed run reads each receipt; a local run has them in memory.
_DEPLOYED_PARTITION = Counter(GET=1)


class Standing(msgspec.Struct, frozen=True):
    """The state of the store before a run.

    Attributes:
        founded: something was committed to this destination before.
        new_logs: number of partitions with something to do that have no log yet.
        deployed: the state machine executes the run, with Lambda functions of ``worker_mb``.
        worker_mb: memory of these functions, in MB.
    """

    founded: bool = True
    new_logs: int = 0
    deployed: bool = True
    worker_mb: int = USUAL_WORKER_MB


def expected(
    plans: Sequence[CompactionPlan],
    settings: Settings,
    looked: Mapping[str, int],
    standing: Standing,
    oversized: Iterable[WorkItem] = (),
) -> RunWork:
    """Estimate what a run will request from AWS.

    Args:
        plans: plans of all partitions that workers take.
        settings: settings of the run.
        looked: requests made for the plans, including discovery, by kind.
        standing: the state of the store before the run.
        oversized: partitions for Spark, if the settings have an engine.
    """
    requests = Counter({name: count for name, count in looked.items() if "bytes" not in name})
    requests += _RUN
    for plan in plans:
        requests += _of_partition(plan, settings, standing)
    if not standing.founded and any(plan.groups for plan in plans):
        requests += _FOUNDED
    elif standing.new_logs:
        requests += _NEW_LOG
    left = list(oversized) if settings.spark_engine != "none" else []
    requests += _of_spark(left)
    hours = _spark_hours(left, settings)
    compute = _functions(plans, settings, standing) if standing.deployed else RunWork()
    spark = RunWork(dict(requests), vcpu_hours=hours, gb_hours=hours * _GB_PER_VCPU)
    return compute + spark


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


def of_functions(
    partitions: int, largest: Largest, seconds: float, settings: Settings, worker_mb: int
) -> RunWork:
    """Estimate the use of Lambda and Step Functions.

    Args:
        partitions: number of partitions.
        largest: the largest of them.
        seconds: total time that functions of ``worker_mb`` work on them.
        settings: settings of the run.
        worker_mb: memory of the functions, in MB.
    """
    each = Fleet(processors_of(worker_mb)).batch_partitions(partitions, largest, settings)
    children = math.ceil(partitions / each)
    return RunWork(
        gb_seconds=(_BESIDE_SECONDS + seconds) * worker_mb / _MB_PER_GB,
        invocations=children + _BESIDE_CALLS,
        transitions=TRANSITIONS_PER_RUN + TRANSITIONS_PER_CHILD * children,
    )


def after_receipt(*, committed: bool) -> Counter[str]:
    """Return a worker's requests after the counts of its receipt, including the receipt itself."""
    return _PARTITION + Counter(PUT=int(committed))


def _of_partition(plan: CompactionPlan, settings: Settings, standing: Standing) -> Counter[str]:
    found = Counter(_PARTITION)
    if standing.deployed:
        found += _DEPLOYED_PARTITION
    if plan.groups:
        found += _WORKED_ON
    elif not standing.founded:
        found += _UNFOUNDED_REST
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


def _of_spark(oversized: Sequence[WorkItem]) -> Counter[str]:
    """Return the least requests for oversized partitions, which are not counted to their end."""
    found: Counter[str] = Counter()
    for item in oversized:
        found += Counter(GET=item.objects) + _PARTITION + _WORKED_ON + _OUTPUT
    return found


def _spark_hours(oversized: Sequence[WorkItem], settings: Settings) -> float:
    if not oversized:
        return 0.0
    work = sum(speed_for(one.prefix, settings).seconds(one.objects, one.bytes) for one in oversized)
    return (work * MEASURED_PROCESSORS + _SPARK_START_SECONDS * _SPARK_VCPUS) / 3_600


def _functions(plans: Sequence[CompactionPlan], settings: Settings, standing: Standing) -> RunWork:
    fleet = Fleet(processors_of(standing.worker_mb))
    objects = [sum(len(group.sources) for group in plan.groups) for plan in plans]
    sizes = [sum(group.size for group in plan.groups) for plan in plans]
    largest = Largest(max(objects, default=0), max(sizes, default=0))
    seconds = sum(_seconds(plan, settings, fleet) for plan in plans)
    return of_functions(len(plans), largest, seconds, settings, standing.worker_mb)


def _seconds(plan: CompactionPlan, settings: Settings, fleet: Fleet) -> float:
    speeds: dict[WorkerSpeed, float] = {}
    for group in plan.groups:
        speed = speed_for(group.sources[0].key, settings).on(fleet.processors)
        taken = 0.0 if group.copy else speed.seconds(len(group.sources), group.size)
        speeds[speed] = speeds.get(speed, 0.0) + taken
    return PARTITION_SECONDS + sum(speeds.values())
