"""What compaction would cost and save, by what a scan found.

Nothing is planned here: how many outputs there would be is reckoned from sizes, and what a run asks
of AWS from objects, partitions and outputs. ``compactor plan`` knows both better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compactor.discovery.fleet import PARTITION_SECONDS, USUAL_WORKER_MB, Fleet, processors_of
from compactor.discovery.speed import speed_for
from compactor.discovery.work import Largest
from compactor.limits import USUAL
from compactor.money import Holding, RunWork, Shape
from compactor.money.running import TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN
from compactor.planning.seconds import PART_BYTES
from compactor.scanning.choosing import Choice, Layout
from compactor.scanning.scan import Seen
from compactor.settings.settings import Settings

_KEYS_PER_LIST = 1_000
# Discovery lists a partition, and so does the worker that compacts it.
_PASSES = 2
# Of an output: begin and end of its upload, its commit and the commit's witness.
_PUTS_OF_AN_OUTPUT = 4
# Of a partition: its log, twice; the first and last entry; its receipt, rest and checkpoint.
_LISTS_OF_A_PARTITION, _GETS_OF_A_PARTITION, _PUTS_OF_A_PARTITION = 2, 2, 3
# Of discovery and the report.
_BESIDE_SECONDS, _BESIDE_CALLS = 4.0, 2
_MB_PER_GB = 1_024


def compacted_of(choice: Choice) -> Sequence[Layout]:
    """The layouts that would be compacted: of two readings of the same keys the better one."""
    return choice.layouts[:1] if choice.either else choice.layouts


def shapes_of(seen: Seen, choice: Choice) -> tuple[Shape, Shape]:
    """What a run would take, and what it would leave in its place.

    Both are extrapolated where not all objects were listed. Objects that a run leaves alone for
    their class or for being empty are in neither.
    """
    layouts = compacted_of(choice)
    grown = _grown(seen)
    share = grown * sum(one.objects for one in layouts) / max(1, choice.total)
    holdings = (
        Holding(name, *(round(share * count) for count in counts))
        for name, counts in sorted(seen.taken.items())
    )
    before = Shape(tuple(one for one in holdings if one.objects))
    before = Shape(before.holdings, before.objects)
    outputs = round(grown * sum(one.outputs for one in layouts))
    if not (outputs and before.objects):
        return before, Shape()
    outputs = min(outputs, before.objects)
    # Readers share what is not compressed.
    plain = grown * sum(one.packs.plain for one in layouts)
    parts = max(outputs, math.ceil(plain / PART_BYTES))
    return before, Shape.alike(outputs, before.bytes // outputs, parts=parts)


def work_of(seen: Seen, choice: Choice, settings: Settings) -> RunWork:
    """What a run of the state machine would ask of AWS, about."""
    found = RunWork()
    for one in compacted_of(choice):
        found += _of_layout(one, _grown(seen), settings)
    return found


def _grown(seen: Seen) -> float:
    """How many objects there are for each that was listed."""
    return seen.total_objects / max(1, seen.objects)


def _of_layout(one: Layout, grown: float, settings: Settings) -> RunWork:
    objects, outputs = round(grown * one.objects), round(grown * one.outputs)
    partitions = max(1, round(grown * one.partitions))
    read = max(0, round(grown * (one.objects - one.packs.large)))
    size = round(grown * (one.packs.plain + one.packs.compressed))
    copied = round(grown * one.packs.large_bytes)
    parts = size / USUAL.part_bytes + copied / USUAL.copy_part_bytes
    pages = max(partitions, math.ceil(objects / _KEYS_PER_LIST))
    fleet = Fleet(processors_of(USUAL_WORKER_MB))
    each = fleet.batch_partitions(
        partitions, Largest(objects // partitions, size // partitions), settings
    )
    children = math.ceil(partitions / each)
    speed = speed_for(one.example).on(fleet.processors)
    seconds = _BESIDE_SECONDS + PARTITION_SECONDS * partitions + speed.seconds(read, size)
    return RunWork(
        requests={
            "LIST": _PASSES * pages + _LISTS_OF_A_PARTITION * partitions,
            "GET": read + _GETS_OF_A_PARTITION * partitions,
            "PUT": math.ceil(_PUTS_OF_AN_OUTPUT * outputs + max(parts, outputs))
            + _PUTS_OF_A_PARTITION * partitions,
        },
        gb_seconds=seconds * USUAL_WORKER_MB / _MB_PER_GB,
        invocations=children + _BESIDE_CALLS,
        transitions=TRANSITIONS_PER_RUN + TRANSITIONS_PER_CHILD * children,
    )
