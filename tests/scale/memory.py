"""The peak of what each function holds, in MB.

What the code allocates is traced while it runs, a second time and on a smaller sample, because
tracing makes it slow. To it comes what a process of Lambda has before its first invocation, and
what the worker holds of bodies, which are skipped here: its budget.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Container
from dataclasses import replace
from functools import cache, partial
from typing import Any
from unittest import mock

from compactor.limits import USUAL
from compactor.log.digests import Digests
from compactor.log.log import CommitLog
from compactor.log.state import LogState
from compactor.report import receipt_totals as gathered
from compactor.settings.settings import Settings
from compactor.sizes import MIB
from tests.scale.account import Account, Invocation, account
from tests.scale.cases import Case, simulated
from tests.scale.keys import Keys
from tests.scale.services import FUNCTIONS, Services
from tests.scale.wire import Stored

_SMALL, _FEW, _MANY = 3, 100, 400
_LOGS = 1_000, 2_000
_START = """
import resource, sys
import compactor_handlers.compact_partition, compactor_handlers.discover, compactor_handlers.report
from compactor.s3.store import make_client
make_client()
sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


@cache
def at_start() -> float:
    """What a process has before its first invocation; resident."""
    done = subprocess.run(
        [sys.executable, "-c", _START], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024 / MIB


def traced(work: Callable[[], object]) -> float:
    """The peak of what some work allocates, MB."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def of_run(case: Case, services: Services) -> dict[str, float]:
    """MB of each function in the first run of a case, from the memory of a part of its sample."""
    few = min(case.sampled, _SMALL)
    found = _peaks(replace(case, partitions=few, sampled=few, runs=case.runs[:1]), services)
    # Beyond so many, a report holds no more receipts.
    shown = max(0, min(case.partitions, gathered.SHOWN_PARTITIONS) - few)
    for name, mb in _growth(services).items():
        found[name] += mb * (shown if name == "report" else case.partitions - few)
    found["report"] += _growth_of_a_full_report(services) * (case.partitions - few - shown)
    found["compact_partition"] += USUAL.read_ahead_bytes / MIB
    return {name: mb + at_start() for name, mb in found.items()}


def of_log(sources: int, groups: int, services: Services) -> dict[str, float]:
    """MB to write the checkpoint of a log of so many sources, and to read it."""
    found: dict[str, float] = {}
    with account(Keys(1, 1), services) as here:
        case = Case(1, 1, 1, ())
        settings = Settings.from_input(case.input)
        partition = here.wire.keys.item(0)
        log = CommitLog(here.store, settings, partition)
        found["written"] = traced(partial(log.checkpoint, _state(sources, groups)))
        names = (
            settings.layout.commit(partition.path, number)[1] for number in range(1, groups + 1)
        )
        here.wire.stored.update((name, Stored.of(b"", here.wire.now)) for name in names)
        found["read"] = traced(log.load)
    return found


def _state(sources: int, groups: int) -> LogState:
    digests = _digests(sources)
    return LogState(
        last=groups,
        committed=digests,
        log_id="0" * 32,
    )


def _digests(count: int) -> Digests:
    """So many, evenly spread, in order."""
    step = (1 << 128) // count
    return Digests.from_bytes(b"".join((one * step).to_bytes(16) for one in range(count)))


def _peaks(case: Case, services: Services, wanted: Container[str] = FUNCTIONS) -> dict[str, float]:
    """MB at most that the calls of each function allocate."""
    found: dict[str, float] = {}
    call = Account.call

    def traced_call(self: Account, name: str, *given: Any, **named: Any) -> Invocation:
        if name not in wanted:
            return call(self, name, *given, **named)
        made: list[Invocation] = []
        mb = traced(lambda: made.append(call(self, name, *given, **named)))
        found[name] = max(found.get(name, 0.0), mb)
        return made[0]

    with mock.patch.object(Account, "call", traced_call):
        list(simulated(case, services))
    return found


@cache
def _growth(services: Services) -> dict[str, float]:
    """MB that a partition more takes, by function."""
    few, many = (_peaks(_small(n), services, {"report"}) for n in (_FEW, _MANY))
    few["discover"], many["discover"] = (_peak_of_discovery(n, services) for n in (_FEW, _MANY))
    found = {name: max(0.0, mb - few[name]) / (_MANY - _FEW) for name, mb in many.items()}
    # Fewer logs than a page lists would show how pages grow.
    few, many = (_peaks(_small(n), services, {"plan_clean_up"}) for n in _LOGS)
    grown = max(0.0, many["plan_clean_up"] - few["plan_clean_up"])
    return {**found, "plan_clean_up": grown / (_LOGS[1] - _LOGS[0])}


def _small(partitions: int) -> Case:
    return Case(partitions, 1, 2, (("", 0),))


@cache
def _growth_of_a_full_report(services: Services) -> float:
    """MB that a partition more takes which the report does not tell one by one."""
    with mock.patch.object(gathered, "SHOWN_PARTITIONS", _FEW // 2):
        few, many = (
            _peaks(Case(n, 1, 2, (("", 0),)), services, {"report"})["report"] for n in (_FEW, _MANY)
        )
    return max(0.0, many - few) / (_MANY - _FEW)


def _peak_of_discovery(partitions: int, services: Services) -> float:
    event = {"input": Case(1, 1, 1, ()).input, "run_id": "run-1", "started_at": "2026-01-04"}
    with account(Keys(partitions, 1), services) as here:
        return traced(lambda: here.call("discover", event))
