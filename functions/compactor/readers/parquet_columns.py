"""The columns of a Parquet table, as Hive types, from the footers of a few of its objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compactor.encoding.parquet_file import open_parquet
from compactor.errors import UnreadableSource
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.readers.inferred_columns import Column, no_columns
from compactor.rows.hive_types import NoHiveType, hive_columns


def columns_of(objects: Sequence[SourceObject], store: ObjectStore) -> tuple[Column, ...]:
    """Return the columns of all given objects, in order of first appearance.

    Args:
        objects: Parquet objects; unreadable ones are skipped.
        store: where they are. One or two ranges of each are read.

    Raises:
        InvalidInput: none can be read, a column has a type that Hive does not support, or has
            two types.
    """
    found: dict[str, str] = {}
    for one in objects:
        for name, kind in _columns_of(one, store).items():
            known = found.setdefault(name, kind)
            if known != kind:
                raise no_columns(f"{name} is {known} in some objects, and {kind} in {one.key}")
    if not found:
        raise no_columns("no object with a Parquet footer was found")
    return tuple({"name": name, "type": kind} for name, kind in found.items())


def _columns_of(one: SourceObject, store: ObjectStore) -> dict[str, str]:
    try:
        file = open_parquet(partial(store.get_range, one.bucket, one.key), one.size)
        return hive_columns(file.schema_arrow)
    except UnreadableSource:
        return {}
    except NoHiveType as error:
        raise no_columns(f"of {one.key}, {error}") from error
