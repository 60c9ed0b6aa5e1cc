"""The columns of converted outputs: given, or inferred once and pinned for every later run.

The pin is stored next to the commit logs and covers the whole destination, not one partition:
readers see the outputs of all partitions as one table. Each commit also names its columns.
Entries are numbered and created only if absent: of two concurrent first runs, one adopts the
other's pin.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa

from compactor.decoding import require_version
from compactor.documents import create_once
from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.ports import ObjectStore
from compactor.rows.ddl import parse_ddl
from compactor.rows.schema import (
    SUPERSET_ACCEPTED,
    SchemaClash,
    from_spark_json,
    merged,
    simple,
    spark_document,
)
from compactor.settings.settings import Settings

_VERSION = 1
# A race is lost only when another run adds a schema, which few runs of a destination do.
_MOST_RACES = 100


def pinned_schema(
    settings: Settings,
    store: ObjectStore,
    infer: Callable[[pa.Schema], pa.Schema],
) -> pa.Schema:
    """Return the columns for outputs of this run, and pin them if they are not pinned yet.

    With ``schema_evolution: "add_columns"`` the pin is extended by further columns of the records,
    unless the columns are given.

    Args:
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
    given = None if settings.parquet_schema is None else given_schema(settings.parquet_schema)
    for _ in range(_MOST_RACES):
        sequence, pinned = _load(settings, store)
        wanted = _wanted(pinned, given, settings, infer)
        if pinned is not None and wanted == pinned:
            return wanted
        bucket, key = settings.layout.parquet_schema(sequence + 1)
        document = {"version": _VERSION, "schema": spark_document(wanted)}
        if create_once(store, (bucket, key), json.dumps(document, indent=1).encode()):
            return wanted
    prefix = settings.layout.parquet_schemas[1]
    raise TransientStoreError(f"{_MOST_RACES} other schemas came first below {prefix}")


def _wanted(
    pinned: pa.Schema | None,
    given: pa.Schema | None,
    settings: Settings,
    infer: Callable[[pa.Schema], pa.Schema],
) -> pa.Schema:
    """Return the columns that the pin should have."""
    if given is not None:
        if pinned is not None and given != pinned:
            _require_superset(pinned, given, settings)
        return given
    if pinned is None:
        return _found_out(infer)
    return infer(pinned) if settings.schema_evolution == "add_columns" else pinned


def known_schema(settings: Settings, store: ObjectStore) -> pa.Schema | None:
    """Return the given or pinned columns; None if they are yet to be inferred.

    Raises:
        InvalidInput: the given schema is invalid.
    """
    if settings.parquet_schema is not None:
        return given_schema(settings.parquet_schema)
    return _load(settings, store)[1]


def given_schema(text: str) -> pa.Schema:
    """Parse a DDL string.

    Raises:
        InvalidInput: the string is not a valid schema.
    """
    try:
        # Rejects names that differ only in case, which one output must not have.
        return merged(parse_ddl(text), pa.schema([]))
    except (ValueError, SchemaClash) as error:
        accepted = f"a Spark DDL string such as 'id BIGINT, name STRING' ({error})"
        raise InvalidInput("parquet_schema", text, accepted) from error


def _found_out(infer: Callable[[pa.Schema], pa.Schema]) -> pa.Schema:
    found = infer(pa.schema([]))
    try:
        merged(found, pa.schema([]))
    except SchemaClash as clash:
        accepted = f"a schema: in the records there is {clash}"
        raise InvalidInput("parquet_schema", None, accepted) from clash
    if not found.names:
        accepted = "a schema: the first records have no field with a value"
        raise InvalidInput("parquet_schema", None, accepted)
    return found


def _require_superset(pinned: pa.Schema, given: pa.Schema, settings: Settings) -> None:
    def refused(why: str) -> InvalidInput:
        accepted = f"a superset of the columns that outputs have already: {why}"
        return InvalidInput("parquet_schema", settings.parquet_schema, accepted)

    try:
        superset = merged(given, pinned)
    except SchemaClash as clash:
        why = f"column {clash.column} is {clash.two} there and {clash.one} here"
        raise refused(f"{why}; expected {SUPERSET_ACCEPTED}") from clash
    for one in superset:
        if one.name not in given.names or given.field(one.name).type != one.type:
            raise refused(f"column {one.name} must be {simple(one.type)}")


def _load(settings: Settings, store: ObjectStore) -> tuple[int, pa.Schema | None]:
    """Return the number of the latest pin and its columns; 0 and None if there is no pin."""
    bucket, prefix = settings.layout.parquet_schemas
    keys = [entry.key for page in store.list_objects(bucket, prefix) for entry in page]
    if not keys:
        return 0, None
    key = max(keys)
    body = store.get(bucket, key)
    require_version(f"s3://{bucket}/{key}", body, _VERSION)
    try:
        document = json.loads(body)
        number = int(key.removeprefix(prefix).removesuffix(".json"))
        return number, from_spark_json(document["schema"])
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{key} is not a schema this program wrote: {error!r}") from error
