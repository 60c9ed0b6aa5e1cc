"""One run over hostile sources in a process of its own, with its peak of memory.

    python -m tests.hostile.child SCENARIO

prints one JSON object: what the run counted, and the bytes that its peak lies above what the
process held before, the sources themselves included.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from compactor.process.memory import tune
from tests.hostile.row_scenarios import ROW_SCENARIOS
from tests.hostile.scenarios import SCENARIOS
from tests.support.memory_store import MemoryStore
from tests.support.world import World

_KIB = 1024


def main(scenario: str) -> None:
    """Run one scenario; an exception ends the process with its traceback."""
    sources, given = {**SCENARIOS, **ROW_SCENARIOS}[scenario]()
    world = World(**given)
    # As the real store has it: larger sources come in pieces.
    world.store = MemoryStore(world.clock, whole_bytes=8 << 20, chunk_bytes=8 << 20)
    world.store.add_bucket("lake")
    for name, body in sources:
        world.put(name, body)
    del sources
    tune()
    before = _forget_peak()
    started = time.process_time()
    receipt = world.run()
    answer = {
        "peak_bytes": _peak() - before,
        "cpu_seconds": round(time.process_time() - started, 1),
        "status": receipt.status,
        "objects_in": receipt.counts.objects_in,
        "objects_out": receipt.counts.objects_out,
        "records": receipt.counts.records,
        "quarantined": receipt.counts.quarantined,
        "reasons": sorted({one.reason for one in receipt.quarantined}),
    }
    print(json.dumps(answer))  # noqa: T201 - this is a program


def _forget_peak() -> int:
    """Linux begins to measure the peak anew; returns what the process holds now, bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


if __name__ == "__main__":
    main(sys.argv[1])
