"""What Iceberg's snapshots say, and how its actions are given the order of rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from compactor_spark.maintain.engines import PREFIX, Rewritten
from compactor_spark.maintain.java import walked
from compactor_tables.orders import BINPACK, ZORDER, Order

RUN, WHAT = f"{PREFIX}.maintenance", f"{PREFIX}.what"


def in_order(session: SparkSession, action: Any, table: Any, order: Order) -> Any:
    """A rewrite's action, given the order of rows."""
    jvm: Any = session._jvm
    if order.how == BINPACK:
        return action.binPack().option("min-input-files", str(order.min_files))
    action = action.option("rewrite-all", "true")
    if order.how == ZORDER:
        gateway: Any = session.sparkContext._gateway
        names = gateway.new_array(jvm.java.lang.String, len(order.columns))
        for number, one in enumerate(order.columns):
            names[number] = one
        return action.zOrder(names)
    if not order.columns:
        return action.sort()
    sort = jvm.org.apache.iceberg.SortOrder.builderFor(table.schema()).caseSensitive(True)
    iceberg = jvm.org.apache.iceberg
    for one in order.columns:
        name, _, direction = one.partition(" ")
        falls = direction.lower() == "desc"
        way = iceberg.SortDirection.DESC if falls else iceberg.SortDirection.ASC
        nulls = iceberg.NullOrder.NULLS_LAST if falls else iceberg.NullOrder.NULLS_FIRST
        sort = sort.sortBy(name, way, nulls)
    return action.sort(sort.build())


def evaluator(jvm: Any, table: Any, spec_id: int, wanted: Any) -> Any:
    """Whether, in a partition of a division, rows that are wanted may lie in it."""
    spec = table.specs().get(spec_id)
    expressions = jvm.org.apache.iceberg.expressions
    projected = expressions.Projections.inclusive(spec, True).project(wanted)
    return expressions.Evaluator(spec.partitionType(), projected, True)


def certainly(jvm: Any, table: Any, spec_id: int, wanted: Any) -> Any | None:
    """Whether all rows of a partition of a spec are wanted; None where that is never known."""
    spec = table.specs().get(spec_id)
    expressions = jvm.org.apache.iceberg.expressions
    projected = expressions.Projections.strict(spec, True).project(wanted)
    if projected.op().toString() == "FALSE":
        return None
    return expressions.Evaluator(spec.partitionType(), projected, True)


def touched(table: Any, snapshot: Any) -> Mapping[tuple[int, str], Any]:
    """Partitions that a snapshot added files to, or took files from, by division and path."""
    io, specs = table.io(), table.specs()
    found: dict[tuple[int, str], Any] = {}
    for files in (
        snapshot.addedDataFiles(io),
        snapshot.removedDataFiles(io),
        snapshot.addedDeleteFiles(io),
        snapshot.removedDeleteFiles(io),
    ):
        for one in walked(files):
            struct, spec_id = one.partition(), int(one.specId())
            path = str(specs.get(spec_id).partitionToPath(struct))
            found.setdefault((spec_id, path), struct)
    return found


def tag_of(run_id: str) -> str:
    """What keeps the snapshot before a run's rewrites."""
    return f"{PREFIX}-{run_id}"


def first_since_mark(table: Any, order: Order) -> int:
    """When the first snapshot after this run's mark was made, UNIX milliseconds.

    An undo looks at all of them: whether they all were made by this program.
    """
    ref = table.refs().get(tag_of(order.run_id))
    first, snapshot = sys.maxsize, table.currentSnapshot()
    while ref is not None and snapshot is not None and snapshot.snapshotId() != ref.snapshotId():
        first = min(first, int(snapshot.timestampMillis()))
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)
    return first


def rewritten_by(snapshot: Any) -> Rewritten:
    """What a rewrite's snapshot says of itself."""
    summary = snapshot.summary()

    def count(name: str) -> int:
        return int(summary.get(name) or 0)

    return Rewritten(
        before=str(snapshot.parentId()),
        after=str(snapshot.snapshotId()),
        files=count("deleted-data-files"),
        bytes=count("removed-files-size"),
        into=count("added-data-files"),
        into_bytes=count("added-files-size"),
    )


def count_of(table: Any) -> int:
    """How many snapshots a table has."""
    return sum(1 for _ in walked(table.snapshots()))
