"""The columns of converted outputs: given, or inferred once and pinned for every later run.

The pin is stored next to the commit logs and covers the whole destination, not one partition:
readers see the outputs of all partitions as one table. Each commit also names its columns.
Entries are numbered and created only if absent: of two concurrent first runs, one adopts the
other's pin.
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
# A race is lost only when another run adds a schema, which few runs of a destination do.
_MOST_RACES = 100


def pinned_schema(
    session: SparkSession,
    settings: Settings,
    store: ObjectStore,
    infer: Callable[[StructType], StructType],
) -> StructType:
    """Return the columns for outputs of this run, and pin them if they are not pinned yet.

    With ``schema_evolution: "add_columns"`` the pin is extended by further columns of the records,
    unless the columns are given.

    Args:
        session: Spark's; parses a given schema.
        settings: of the run.
        store: holds the pin.
        infer: returns the columns passed to it, followed by others that it finds in the records.
            Called only if there is neither a pin nor a given schema, or the pin may be extended.

    Raises:
        InvalidInput: the given schema is invalid, or is not a safe superset of the pinned one; or
            none was given and none can be inferred.
        TransientStoreError: the next entry already existed in 100 attempts: other runs won each
            race, or the store's listing lacks an entry that it has.
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
    """Return the columns that the pin should have."""
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
    """Return the given or pinned columns; None if they are yet to be inferred.

    Raises:
        InvalidInput: the given schema is invalid.
    """
    if settings.parquet_schema is not None:
        return given_schema(session, settings.parquet_schema)
    return _load(settings, store)[1]


def given_schema(session: SparkSession, text: str) -> StructType:
    """Parse a DDL string.

    Raises:
        InvalidInput: the string is not a valid schema.
    """
    try:
        schema = nullable(session.createDataFrame([], text).schema)
        # Rejects names that differ only in case, which one output must not have.
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
    """Return the number of the latest pin and its columns; 0 and None if there is no pin."""
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
