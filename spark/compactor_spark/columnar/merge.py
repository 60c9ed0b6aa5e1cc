"""Merge: rewrites the rows of many small Parquet objects into one large one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import StructType

from compactor.errors import InvalidInput
from compactor.log.manifest import ManifestRow
from compactor.log.slice_facts import SliceFacts
from compactor.model import ObjectGroup, SourceObject
from compactor.outputs.pending import PendingOutput
from compactor_spark.columnar.context import USUAL_CODEC, ColumnarContext
from compactor_spark.columnar.origins import as_spark_names, with_origins
from compactor_spark.columnar.output import Rows, stage_rows, store_output
from compactor_spark.columnar.schema import (
    SUPERSET_ACCEPTED,
    SchemaClash,
    conformed,
    merged,
    nullable,
)
from compactor_spark.columnar.session import quoted
from compactor_spark.columnar.staging import StagedSources, Workspace

_ORDER = ("__source", "__block", "__row")


def merge(
    session: SparkSession, group: ObjectGroup, context: ColumnarContext, workspace: Workspace
) -> PendingOutput:
    """Read a group's sources, write their rows to one output, and store it for publication.

    Sources that are not Parquet are quarantined. Rows are merged as Spark reads them.

    Raises:
        InvalidInput: no type holds a column of two sources without loss; names the column,
            both types and a source of each.
        SourceChanged: a source differs from the listing.
        IntegrityError: the rows read back are not those of the sources.
    """
    staged = workspace.stage(group.sources)
    quarantined = tuple(staged.quarantined)
    if not staged.footers:
        return PendingOutput(group=group, output=None, rows=(), quarantined=quarantined)
    try:
        rows = _rows(session, staged, workspace.order, keyed=bool(context.settings.upsert_key))
        codec = context.codec(_commonest_codec(staged))
        columnar = stage_rows(session, rows, workspace, codec)
    except Exception:
        # Spark's error about a source that changed while being read does not explain the cause.
        workspace.check(group)
        raise
    workspace.check(group)
    output = store_output(group, columnar, workspace.output(), context)
    manifest = tuple(
        ManifestRow(source, 0, 0, None, None, SliceFacts(footer.rows))
        for source, footer in staged.footers
    )
    return PendingOutput(group=group, output=output, rows=manifest, quarantined=quarantined)


def _commonest_codec(staged: StagedSources) -> str:
    found = Counter(footer.codec for _, footer in staged.footers if footer.row_groups)
    return max(sorted(found), key=found.__getitem__) if found else USUAL_CODEC


def _rows(session: SparkSession, staged: StagedSources, order: str, *, keyed: bool) -> Rows:
    schemas = {
        digest: _schema(session, paths[0], staged.examples[digest])
        for digest, paths in staged.paths.items()
    }
    superset = _superset(schemas, staged)
    frames = [
        _frame(session.read.schema(schemas[digest]).parquet(*paths), superset, order, keyed=keyed)
        for digest, paths in staged.paths.items()
    ]
    rows = Rows(reduce(DataFrame.union, frames), superset, _ORDER, staged.rows)
    if not keyed:
        return rows
    return with_origins(session, rows, as_spark_names(session, staged.keys))


def _schema(session: SparkSession, path: str, source: SourceObject) -> StructType:
    try:
        return nullable(session.read.parquet(path).schema)
    except AnalysisException as error:
        found = str(error).partition("\n")[0]
        accepted = f"an object whose columns Spark can read: {found}"
        raise InvalidInput("source", source.key, accepted) from error


def _superset(schemas: dict[str, StructType], staged: StagedSources) -> StructType:
    examples = staged.examples
    seen: list[str] = []
    superset = StructType()
    for digest, schema in schemas.items():
        try:
            superset = merged(superset, schema)
        except SchemaClash as clash:
            two = examples[digest].key
            one = _first_with(clash.one, schema, [(d, schemas[d]) for d in seen])
            raise _refusal(clash, examples[one].key if one else two, two) from clash
        seen.append(digest)
    return superset


def _first_with(
    kind: str, schema: StructType, earlier: Sequence[tuple[str, StructType]]
) -> str | None:
    """Return the digest of the first schema that by itself clashes with this one."""
    for digest, other in earlier:
        try:
            merged(other, schema)
        except SchemaClash as clash:
            if clash.one == kind:
                return digest
    return earlier[0][0] if earlier else None


def _refusal(clash: SchemaClash, one: str, two: str) -> InvalidInput:
    found = f"{clash.one} in {one}, {clash.two} in {two}"
    return InvalidInput(f"column {clash.column}", found, SUPERSET_ACCEPTED)


def _frame(frame: DataFrame, superset: StructType, order: str, *, keyed: bool) -> DataFrame:
    """Return one schema's rows as rows of the superset, with the columns that sort them."""
    found = {field.name: field.dataType for field in frame.schema.fields}
    columns = [
        (
            conformed(F.col(quoted(field.name)), found[field.name], field.dataType)
            if field.name in found
            else F.lit(None).cast(field.dataType)
        ).alias(field.name)
        for field in superset.fields
    ]
    places = (
        F.col(f"_metadata.{order}"),
        F.col("_metadata.file_block_start"),
        # One task reads the rows of a block, sequentially.
        F.col("_metadata.row_index") if keyed else F.monotonically_increasing_id(),
    )
    return frame.select(*columns, *(p.alias(n) for p, n in zip(places, _ORDER, strict=True)))
