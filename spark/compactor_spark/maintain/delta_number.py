"""Rewrites a partition of a Delta table as a given number of files, without a change of data.

Delta does not verify a commit's claim that it changes no data, and an overwrite removes what others
wrote since the read. So one transaction works on the files of one version: it reads only these,
with their deletion vectors, and removes only these. Files added since are kept. If one of the files
was removed, or got another deletion vector, Delta rejects the commit. Before the commit, the rows
of the new files are counted and hashed, and compared with those of the old.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from compactor.errors import IntegrityError
from compactor_spark.maintain.java import singleton, walked
from compactor_spark.maintain.rows import sums_of


def rewrite_as_number(
    session: SparkSession, pinned: tuple[Any, Any], values: Mapping[str, str | None], number: int
) -> None:
    """Rewrite one partition.

    Args:
        session: with Delta's catalog and extensions, and active.
        pinned: the ``DeltaLog``, and the snapshot to read.
        values: of the partition, by the names of columns in data files.
        number: of files to write.

    Raises:
        IntegrityError: the new files do not have the old files' rows; nothing is committed.
        Py4JJavaError: an error of Delta, such as a conflict.
    """
    log, snapshot = pinned
    jvm: Any = session._jvm
    scala, delta = jvm.scala, jvm.org.apache.spark.sql.delta
    option, nil = singleton(scala, "Option"), singleton(scala.collection.immutable, "Nil")
    nothing = option.empty()
    transaction = log.startTransaction(nothing, option.apply(snapshot))
    old = transaction.filterFiles(_one_partition(scala, values))
    rows = DataFrame(log.createDataFrame(snapshot, old, False, nothing), session)
    written = transaction.writeFiles(repartitioned(rows, number)._jdf, nothing, True, nil)
    added = _without_change(jvm, written)
    new = DataFrame(log.createDataFrame(snapshot, added, False, nothing), session)
    before, after = sums_of(rows), sums_of(new)
    if before != after:
        raise IntegrityError(f"{before.rows:,} rows would have become {after.rows:,}: {values}")
    actions = added
    now = int(time.time() * 1000)
    for one in walked(old):
        actions = _and(actions, one.removeWithTimestamp(now, False))
    operation = getattr(delta, "DeltaOperations$Optimize")(nil, nil, False, nothing, False)
    transaction.commit(actions, operation)


def repartitioned(rows: DataFrame, number: int) -> DataFrame:
    """Return the rows in this many partitions; each is written as one file."""
    return rows.repartition(number)


def _one_partition(scala: Any, values: Mapping[str, str | None]) -> Any:
    immutable = scala.collection.immutable
    wanted = singleton(immutable, "Map").empty()
    for name, value in values.items():
        wanted = wanted.updated(name, value)
    return getattr(singleton(immutable, "Set").empty(), "$plus")(wanted)


def _without_change(jvm: Any, written: Any) -> Any:
    """Return the same actions, marked as changing no data."""
    actions = singleton(jvm.scala.collection.immutable, "Nil")
    read = singleton(jvm.org.apache.spark.sql.delta.actions, "Action").fromJson
    for one in walked(written):
        action = json.loads(one.json())
        action["add"]["dataChange"] = False
        actions = _and(actions, read(json.dumps(action)))
    return actions


def _and(actions: Any, action: Any) -> Any:
    return getattr(actions, "$colon$colon")(action)
