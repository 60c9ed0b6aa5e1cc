"""Every request of one partition, in order: those that DESIGN.md lists, each with its reason."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path

from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import Desk
from compactor.orchestration.run import Given, run_whole
from compactor.ports import ObjectStore
from tests.support.examples import NOW, settings
from tests.support.memory_hooks import Call
from tests.support.memory_store import ManualClock, MemoryStore

SOURCES = 200


class _Forever:
    def remaining_seconds(self) -> float:
        return math.inf


def _same(workers: ThisProcess, _: ObjectStore) -> ThisProcess:
    return workers


def _requests(partitions: str) -> list[Call]:
    """Of a run that finds these partitions; a run over another one made the state before."""
    clock = ManualClock(NOW)
    store = MemoryStore(clock)
    for bucket in ("source", "lake"):
        store.add_bucket(bucket)
    given = settings(s3_source_uri="s3://source/logs/", depth=1)
    for found in ("a", partitions):
        for partition, number in product(found, range(SOURCES)):
            body = b'{"id": %d}\n' % number
            key = f"logs/{partition}/{number:03}.json"
            store.seed("source", key, body, last_modified=NOW - 86_400)
        store.calls.clear()
        run_id = f"run-of-{found}"
        workers = ThisProcess(Desk(given, store, clock, run_id), _Forever())
        ended = run_whole(
            Given(
                settings=given,
                run_id=run_id,
                started_at="2027-01-15T08:00:00Z",
                store=store,
                clock=clock,
                deadline=_Forever(),
                workers=partial(_same, workers),
            )
        )
        assert ended.report is not None
        assert ended.report.status == "succeeded"
    return list(store.calls)


def test_design_lists_every_request_that_one_more_partition_costs(repo_root: Path) -> None:
    more, fewer = _requests("bc"), _requests("b")
    asked = Counter(one.name for one in more)
    asked.subtract(one.name for one in fewer)
    reads = [one.key for one in more if one.name == "read_source"]
    text = (repo_root / "DESIGN.md").read_text(encoding="utf-8")
    table = text.partition("### Requests of a partition\n")[2].partition("\n##")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)

    assert sorted(reads) == [
        f"logs/{p}/{number:03}.json" for p in "bc" for number in range(SOURCES)
    ]
    assert +asked == Counter(listed) + Counter(read_source=SOURCES)
