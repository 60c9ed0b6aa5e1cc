"""The columns of converted outputs: given, or found out once, and kept for every later run.

They are kept beside the commit logs for the whole destination, not in one partition's log: outputs
of all partitions are one table to their readers. Each commit names the columns it has, too.
Entries are numbered and created only if absent, so of two first runs one takes the other's.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from compactor.decoding import require_version
from compactor.errors import AlreadyExists, IntegrityError, InvalidInput, TransientStoreError
from compactor.layout import parquet_schema_key, parquet_schemas_prefix
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_spark.columnar.schema import SUPERSET_ACCEPTED, SchemaClash, merged, nullable

_VERSION = 1
# Each lost race brings a schema of another run, and few runs of a destination bring one.
_MOST_RACES = 100


def pinned_schema(
    session: SparkSession,
    settings: Settings,
    store: ObjectStore,
    infer: Callable[[StructType], StructType],
) -> StructType:
    """The columns that outputs of this run have; pinned from now on.

    With ``schema_evolution: "add_columns"`` a pin grows by the columns that records have beside it,
    unless the columns are given.

    Args:
        session: Spark's; reads a given schema.
        settings: of the run.
        store: where the pin is.
        infer: finds out the columns, and returns those that it is given with the others after
            them; asked only where there is neither pin nor given schema, or the pin may grow.

    Raises:
        InvalidInput: the given schema is invalid, or no safe superset of the pinned one; or none
            was given and none can be inferred.
        TransientStoreError: the store says that there is a pin, and shows none.
    """
    given = (
        None if settings.parquet_schema is None else given_schema(session, settings.parquet_schema)
    )
    for _ in range(_MOST_RACES):
        sequence, pinned = _load(settings, store)
        wanted = _wanted(pinned, given, settings, infer)
        if wanted == pinned:
            return wanted
        bucket, key = parquet_schema_key(settings, sequence + 1)
        document = {"version": _VERSION, "schema": wanted.jsonValue()}
        try:
            store.create(bucket, key, json.dumps(document, indent=1).encode())
        except AlreadyExists:
            continue
        return wanted
    prefix = parquet_schemas_prefix(settings)[1]
    raise TransientStoreError(f"{_MOST_RACES} other schemas came first below {prefix}")


def _wanted(
    pinned: StructType | None,
    given: StructType | None,
    settings: Settings,
    infer: Callable[[StructType], StructType],
) -> StructType:
    """The columns that are to be pinned, as far as they are not."""
    if given is not None:
        if pinned is not None and given != pinned:
            _require_superset(pinned, given, settings)
        return given
    if pinned is None:
        return _found_out(infer)
    return infer(pinned) if settings.schema_evolution == "add_columns" else pinned


def known_schema(
    session: SparkSession, settings: Settings, store: ObjectStore
) -> StructType | None:
    """The columns that are given or pinned; None where they are still to be found out.

    Raises:
        InvalidInput: the given schema is invalid.
    """
    if settings.parquet_schema is not None:
        return given_schema(session, settings.parquet_schema)
    return _load(settings, store)[1]


def given_schema(session: SparkSession, text: str) -> StructType:
    """What a DDL string says.

    Raises:
        InvalidInput: it is no schema.
    """
    try:
        schema = nullable(session.createDataFrame([], text).schema)
        # One output may not have names that differ in case alone.
        schema = merged(schema, StructType())
    except (PySparkException, SchemaClash) as error:
        first = next(line.strip() for line in str(error).splitlines() if line.strip())
        accepted = f"a Spark DDL string such as 'id BIGINT, name STRING' ({first})"
        raise InvalidInput("parquet_schema", text, accepted) from error
    return schema


def _found_out(infer: Callable[[StructType], StructType]) -> StructType:
    found = infer(StructType())
    try:
        schema = merged(StructType(), nullable(found))
        merged(schema, StructType())
    except SchemaClash as clash:
        accepted = f"a schema: in the records there is {clash}"
        raise InvalidInput("parquet_schema", None, accepted) from clash
    if not schema.fields:
        accepted = "a schema: the first records have no field with a value"
        raise InvalidInput("parquet_schema", None, accepted)
    return schema


def _require_superset(pinned: StructType, given: StructType, settings: Settings) -> None:
    def refused(why: str) -> InvalidInput:
        accepted = f"a superset of the columns that outputs have already: {why}"
        return InvalidInput("parquet_schema", settings.parquet_schema, accepted)

    try:
        superset = merged(given, pinned)
    except SchemaClash as clash:
        why = f"column {clash.column} is {clash.two} there and {clash.one} here"
        raise refused(f"{why}; expected {SUPERSET_ACCEPTED}") from clash
    for field in superset.fields:
        if field not in given.fields:
            raise refused(f"column {field.name} must be {field.dataType.simpleString()}")


def _load(settings: Settings, store: ObjectStore) -> tuple[int, StructType | None]:
    """The latest pin and its number; 0 when there is none."""
    bucket, prefix = parquet_schemas_prefix(settings)
    keys = [entry.key for page in store.list_objects(bucket, prefix) for entry in page]
    if not keys:
        return 0, None
    key = max(keys)
    body = store.get(bucket, key)
    require_version(f"s3://{bucket}/{key}", body, _VERSION)
    try:
        document = json.loads(body)
        number = int(key.removeprefix(prefix).removesuffix(".json"))
        return number, StructType.fromJson(document["schema"])
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{key} is not a schema this program wrote: {error!r}") from error
