"""A driver that is killed at its work: run with the directory of the tables, and where it dies.

    maintenance_worker.py DIRECTORY rewrite|vacuum

``rewrite``: a rewrite of the Iceberg table is committed, which no receipt says yet, and one of the
Delta table has written a file and committed nothing. ``vacuum``: the one of the Delta table is
committed, and VACUUM is to begin.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from compactor_spark.maintain.delta import DeltaTable
from compactor_spark.maintain.iceberg import IcebergTable
from compactor_tables.orders import ORPHANS, REWRITE, Order, PartitionOrder
from compactor_tables.table_engine import Rewritten, StepDone
from tests.spark.maintenance_world import DELTA, ICEBERG, Maintained, day
from tests.support.table_engines import engine_settings, known_session

A, B = "2026-11-01", "2026-11-02"
_committed = threading.Event()


def kill(session: SparkSession) -> None:
    """Both processes of a driver: Java's would go on for a while."""
    jvm: Any = session._jvm
    os.kill(int(jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class Committed(IcebergTable):
    """Gets no further than the first commit."""

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        super().rewrite(partition, order, what)
        _committed.set()
        threading.Event().wait()
        return None


class Vacuuming(DeltaTable):
    """Gets no further than the last commit before VACUUM."""

    def orphans(self, order: Order, now: float) -> StepDone:
        kill(self.session)
        return StepDone("")


def _kill_at_a_new_file(table: Maintained) -> None:
    before = table.on_disk()
    while table.on_disk() <= before:
        time.sleep(0.001)
    kill(table.session)


def main() -> None:
    builder = SparkSession.Builder().master("local[2]").config("spark.ui.enabled", "false")
    directory = Path(sys.argv[1])
    # What it leaves there nobody else clears away.
    for name, value in {**engine_settings(), "spark.local.dir": str(directory / "local")}.items():
        builder = builder.config(name, value)
    session = known_session(builder.getOrCreate(), directory)
    delta = Maintained(DELTA, session, directory)
    order = delta.order(day(A), steps=(REWRITE, ORPHANS))
    if sys.argv[2] == "vacuum":
        delta.maintain(order, delta.engine(Vacuuming))
        return
    iceberg = Maintained(ICEBERG, known_session(session, directory), directory)
    both = iceberg.order(day(A), day(B))
    given = both, iceberg.engine(Committed)
    threading.Thread(target=iceberg.maintain, args=given, daemon=True).start()
    _committed.wait()
    threading.Thread(target=_kill_at_a_new_file, args=(delta,), daemon=True).start()
    delta.maintain(order)


if __name__ == "__main__":
    main()
