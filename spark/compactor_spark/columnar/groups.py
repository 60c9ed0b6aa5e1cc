"""Compacts one group into a columnar output, by merge, convert or replay."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from compactor.encoding.parquet_footer import read_footer
from compactor.errors import UnreadableSource
from compactor.log.rejects import Waiting
from compactor.model import ObjectGroup, Quarantined, QuarantineReason
from compactor.outputs.group import dropping, store_group, withhold
from compactor.outputs.pending import PendingOutput
from compactor.outputs.row_recount import read_rows_again
from compactor.outputs.verify import check_pending
from compactor.planning.dialects import Dialects
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.convert import convert
from compactor_spark.columnar.local import LocalWorkspace
from compactor_spark.columnar.merge import merge
from compactor_spark.columnar.native import NativeWorkspace
from compactor_spark.columnar.replay import replay
from compactor_spark.columnar.session import columnar_session
from compactor_spark.columnar.staging import STAGED, Workspace, access_of

__all__ = ["ColumnarContext", "compact_columnar"]


def compact_columnar(
    session: SparkSession,
    group: ObjectGroup,
    context: ColumnarContext,
    replays: Sequence[Waiting] = (),
) -> PendingOutput:
    """Do steps 1 to 3 of the write order for one group whose output holds rows.

    Sources in which a second reader counts a different number of records are quarantined.

    Safe to call from several threads with one session.

    Args:
        session: Spark's.
        group: to be compacted.
        context: of its partition.
        replays: the group's sources, if these are rejects of earlier entries.

    Raises:
        InvalidInput: the sources have no common schema, or the given schema is invalid.
        SourceChanged: a source differs from the listing; nothing was written.
        IntegrityError: the rows written are not the rows read; what was stored is dropped.
    """
    if group.copy:
        return _copied(group, context)
    own = columnar_session(session)
    workspace = _workspace(own, group, context)
    try:
        if replays:
            pending = replay(own, group, replays, context, workspace)
        elif context.settings.format == "parquet":
            pending = merge(own, group, context, workspace)
        else:
            pending = convert(own, group, context, workspace)
    finally:
        workspace.close()
    with dropping(pending.output, context.store):
        check_pending(pending)
        if replays or context.settings.format == "parquet":
            return pending
        differences = read_rows_again(pending, context.settings, context.store)
    return withhold(pending, differences, context.store)


def _workspace(session: SparkSession, group: ObjectGroup, context: ColumnarContext) -> Workspace:
    way = access_of(session)
    if way == STAGED:
        return LocalWorkspace(context.store)
    return NativeWorkspace(way, group, context)


def _copied(group: ObjectGroup, context: ColumnarContext) -> PendingOutput:
    """Copy a Parquet object that is already large byte for byte, so that it can be restored."""
    (source,) = group.sources

    def read_range(start: int, length: int) -> bytes:
        return context.store.read_range(source, start, length)

    try:
        read_footer(read_range, source.size)
    except UnreadableSource as error:
        found = Quarantined(source, QuarantineReason(error.reason), error.detail)
        return PendingOutput(group=group, output=None, rows=(), quarantined=(found,))
    settings, store = context.settings, context.store
    decide = Dialects(settings, store)
    return store_group(group, settings, store, context.destination, decide=decide)
