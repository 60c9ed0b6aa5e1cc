"""The columns of a table of Parquet, by the footers of a few of its objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compactor.encoding.parquet_footer import read_footer
from compactor.encoding.parquet_schema import NoHiveType, hive_columns
from compactor.errors import UnreadableSource
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.readers.inferred_columns import Column, no_columns


def columns_of(objects: Sequence[SourceObject], store: ObjectStore) -> tuple[Column, ...]:
    """All columns that any of some objects has, in the order in which they were met.

    Args:
        objects: of Parquet; one that cannot be read is passed over.
        store: where they are. One or two ranges of each are read.

    Raises:
        InvalidInput: none of them can be read, a column is of a type that Hive has not, or of two
            types.
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
        footer = read_footer(partial(store.get_range, one.bucket, one.key), one.size)
        return dict(hive_columns(footer.schema))
    except UnreadableSource:
        return {}
    except NoHiveType as error:
        raise no_columns(f"of {one.key}, {error}") from error
