"""A driver that is killed between a rewrite's commit and its receipt: run with a directory."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from compactor.maintenance.orders import Order, PartitionOrder
from compactor_spark.maintain.engines import Rewritten
from compactor_spark.maintain.iceberg import IcebergTable
from tests.spark.maintenance_world import ICEBERG, Maintained, day
from tests.support.table_engines import engine_settings, known_session


class Doomed(IcebergTable):
    """Its driver gets no further than the first commit."""

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        super().rewrite(partition, order, what)
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def main() -> None:
    builder = SparkSession.Builder().master("local[2]").config("spark.ui.enabled", "false")
    for name, value in engine_settings().items():
        builder = builder.config(name, value)
    directory = Path(sys.argv[1])
    session = known_session(builder.getOrCreate(), directory)
    table = Maintained(ICEBERG, session, directory)
    table.maintain(table.order(day("2026-11-01"), day("2026-11-02")), table.engine(Doomed))


if __name__ == "__main__":
    main()
