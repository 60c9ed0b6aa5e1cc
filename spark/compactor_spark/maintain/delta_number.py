"""A partition of a Delta table as so many files, without a change of its data.

Nothing in Delta checks that a commit which says so changes no data, and an overwrite takes away
what others wrote since it was read. So here one transaction knows the files of one version: it
reads just these, with their deletion vectors, and takes away just these. Files that came since
stay; where one of them went, or has another deletion vector, Delta refuses the commit. And before
it, the rows of the new files are counted and hashed beside those of the old.
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
        pinned: the ``DeltaLog``, and the snapshot that is read.
        values: of the partition, by the names of columns in data files.
        number: of files.

    Raises:
        IntegrityError: the new files have not the rows of the old ones; nothing is committed.
        Py4JJavaError: whatever Delta says; a conflict among it.
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
    """The rows in so many tasks, each of which writes one file."""
    return rows.repartition(number)


def _one_partition(scala: Any, values: Mapping[str, str | None]) -> Any:
    immutable = scala.collection.immutable
    wanted = singleton(immutable, "Map").empty()
    for name, value in values.items():
        wanted = wanted.updated(name, value)
    return getattr(singleton(immutable, "Set").empty(), "$plus")(wanted)


def _without_change(jvm: Any, written: Any) -> Any:
    """The same actions, of a commit that changes no data."""
    actions = singleton(jvm.scala.collection.immutable, "Nil")
    read = singleton(jvm.org.apache.spark.sql.delta.actions, "Action").fromJson
    for one in walked(written):
        action = json.loads(one.json())
        action["add"]["dataChange"] = False
        actions = _and(actions, read(json.dumps(action)))
    return actions


def _and(actions: Any, action: Any) -> Any:
    return getattr(actions, "$colon$colon")(action)
