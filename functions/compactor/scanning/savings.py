"""What compaction would cost and save, estimated from a scan.

Nothing is planned here: the number of outputs is estimated from sizes, and the requests of a run
from the numbers of objects, partitions and outputs. ``compactor plan`` is more accurate on both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from compactor.discovery.estimate import PASSES, of_functions, of_numbers
from compactor.discovery.fleet import PARTITION_SECONDS, USUAL_WORKER_MB, processors_of
from compactor.discovery.speed import speed_for
from compactor.discovery.work_items import Largest
from compactor.limits import USUAL
from compactor.money import KEYS_PER_LIST, Holding, RunWork
from compactor.scanning.choosing import Choice, Layout
from compactor.scanning.scan import Seen
from compactor.settings.settings import Settings


def compacted_of(choice: Choice) -> Sequence[Layout]:
    """Return the layouts to compact: of two readings of the same keys, only the better one."""
    return choice.layouts[:1] if choice.either else choice.layouts


def holdings_of(
    seen: Seen, choice: Choice, shares: Mapping[str, float]
) -> tuple[tuple[Holding, ...], tuple[Holding, ...]]:
    """Return what a run would compact by storage class, and the outputs that would replace it.

    Both are extrapolated if not all objects were listed. Objects that a run leaves because of their
    storage class, or because they are empty, are in neither.

    Args:
        seen: what was listed.
        choice: of the keys' layout.
        shares: of the objects of each kind of name, what a run does not leave alone.
    """
    layouts = compacted_of(choice)
    grown = _grown(seen)
    share = grown * sum(one.objects for one in layouts) / max(1, choice.total)
    taken: dict[str, list[float]] = {}
    for (name, kind), counts in sorted(seen.taken.items()):
        before = taken.get(name, [0.0] * len(counts))
        of_kind = shares.get(kind, 1.0)
        taken[name] = [one + of_kind * more for one, more in zip(before, counts, strict=True)]
    holdings = (
        Holding(name, *(round(share * count) for count in counts)) for name, counts in taken.items()
    )
    sources = tuple(one for one in holdings if one.objects)
    objects = sum(one.objects for one in sources)
    outputs = min(objects, round(grown * sum(one.outputs for one in layouts)))
    if not outputs:
        return sources, ()
    size = sum(one.bytes for one in sources) // outputs
    return sources, (Holding.alike(outputs, size),)


def work_of(seen: Seen, choice: Choice, settings: Settings) -> RunWork:
    """Return the approximate use of AWS by a run of the state machine."""
    found = RunWork()
    for one in compacted_of(choice):
        found += _of_layout(one, _grown(seen), settings)
    return found


def _grown(seen: Seen) -> float:
    """Return the ratio of existing to listed objects."""
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
    speed = speed_for(one.example, settings).on(processors_of(USUAL_WORKER_MB))
    seconds = PARTITION_SECONDS * partitions + speed.seconds(read, size)
    largest = Largest(objects // partitions, size // partitions)
    functions = of_functions(partitions, largest, seconds, settings, USUAL_WORKER_MB)
    return RunWork(dict(requests)) + functions
