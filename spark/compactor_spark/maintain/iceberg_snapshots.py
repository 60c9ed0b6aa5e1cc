"""Reads Iceberg's snapshots, and configures the row order of its rewrite actions."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from compactor_spark.maintain.java import walked
from compactor_tables.orders import BINPACK, ZORDER, Order
from compactor_tables.table_engine import PREFIX, Rewritten

RUN, WHAT = f"{PREFIX}.maintenance", f"{PREFIX}.what"


def in_order(session: SparkSession, action: Any, table: Any, order: Order) -> Any:
    """Return a rewrite action with the row order that the maintenance order asks for."""
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


def certainly(jvm: Any, table: Any, spec_id: int, wanted: Any) -> Any | None:
    """Return an evaluator of whether all rows of a partition are wanted.

    None if the spec never allows such a conclusion.
    """
    spec = table.specs().get(spec_id)
    expressions = jvm.org.apache.iceberg.expressions
    projected = expressions.Projections.strict(spec, True).project(wanted)
    if projected.op().toString() == "FALSE":
        return None
    return expressions.Evaluator(spec.partitionType(), projected, True)


def rewritten_by(snapshot: Any) -> Rewritten:
    """Return a rewrite's result from the summary of its snapshot."""
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
    """Return the number of a table's snapshots."""
    return sum(1 for _ in walked(table.snapshots()))
