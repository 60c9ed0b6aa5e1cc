"""A worker process that kills itself with SIGKILL at a chosen request.

    python -m tests.support.killed_worker ENDPOINT RUN_ID SETTINGS_JSON [MOMENT NAME NTH]

``NAME`` is a method of the store, ``MOMENT`` is ``before`` or ``after``; without them the
worker survives. If ``clean_up`` is enabled in the settings, clean-up follows the compaction.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from math import inf
from typing import Any

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from tests.support.examples import PARTITION


class _Now:
    def now(self) -> float:
        return time.time()

    def remaining_seconds(self) -> float:
        return inf


class KillingStore:
    """Forwards every call, of any thread, and kills the process at one of them."""

    def __init__(self, store: S3Store, moment: str, name: str, nth: int) -> None:
        self._store = store
        self._moment = moment
        self._name = name
        self._calls = itertools.count(1)
        self._nth = nth

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name != self._name:
            return attribute
        return self._reading if name == "read_sources" else self._calling(attribute)

    def _calling(self, method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            fatal = next(self._calls) == self._nth
            if fatal and self._moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            answer = method(*arguments, **named)
            if fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    def _reading(self, sources: Any) -> Any:
        for body in self._store.read_sources(sources):
            if next(self._calls) == self._nth:
                os.kill(os.getpid(), signal.SIGKILL)
            yield body


def main() -> None:
    endpoint, run_id, given, *death = sys.argv[1:]
    settings = Settings.from_input(json.loads(given))
    store: Any = S3Store(make_client(endpoint))
    if death:
        moment, name, nth = death
        store = KillingStore(store, moment, name, int(nth))
    compact_partition(PartitionRun(PARTITION, settings, store, _Now(), _Now(), run_id), Counts())
    if settings.deletes:
        # The server's Date is up to a second late, and clean-up believes the earlier clock.
        time.sleep(1.1)
        run = CleanUpRun(PARTITION.path, settings, store, _Now(), _Now(), run_id)
        record_clean_up(run, CleanUpReceipt(PARTITION.path, run_id))


if __name__ == "__main__":
    main()
