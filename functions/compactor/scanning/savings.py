"""What compaction would cost and save, by what a scan found.

Nothing is planned here: how many outputs there would be is estimated from sizes, and what a run
asks of AWS from objects, partitions and outputs. ``compactor plan`` knows both better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compactor.discovery.estimate import PASSES, of_functions, of_numbers
from compactor.discovery.fleet import PARTITION_SECONDS, USUAL_WORKER_MB, processors_of
from compactor.discovery.speed import speed_for
from compactor.discovery.work_items import Largest
from compactor.limits import USUAL
from compactor.money import Holding, RunWork, Shape
from compactor.money.storage import KEYS_PER_LIST
from compactor.planning.query_seconds import PART_BYTES
from compactor.scanning.choosing import Choice, Layout
from compactor.scanning.scan import Seen
from compactor.settings.settings import Settings


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
    requests = of_numbers(partitions, outputs, read, parts)
    requests["LIST"] += PASSES * max(partitions, math.ceil(objects / KEYS_PER_LIST))
    speed = speed_for(one.example).on(processors_of(USUAL_WORKER_MB))
    seconds = PARTITION_SECONDS * partitions + speed.seconds(read, size)
    largest = Largest(objects // partitions, size // partitions)
    functions = of_functions(partitions, largest, seconds, settings, USUAL_WORKER_MB)
    return RunWork(dict(requests)) + functions
