"""How much of a Parquet object to read at once, so that rows of any shape fit into memory.

A footer states encoded sizes. Values that repeat take next to no space there: a million rows of one
long text are a dictionary of one value. Such columns are read as dictionaries, and decoded in parts
of a bounded size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from compactor.sizes import MIB

#: Memory for the rows of one batch, decoded.
BATCH_BYTES = 32 * MIB
_MOST_ROWS = 1 << 20
# Each column chunk has a buffer of its own while it is read.
_MOST_BUFFER, _LEAST_BUFFER = MIB, 4 * 1024
# Bytes of a value, or of the offset of a text, in memory. Others are counted as 16.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_WIDTHS |= {"BYTE_ARRAY": 5}


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read one object.

    Attributes:
        rows_at_once: rows of a batch, for each row group.
        as_dictionaries: paths of the columns to read as dictionaries.
        buffer_bytes: size of the buffer of each column chunk.
    """

    rows_at_once: tuple[int, ...]
    as_dictionaries: list[str]
    buffer_bytes: int


def plan_reading(metadata: pq.FileMetaData) -> Reading:
    """Decide how to read an object whose footer is this."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    paths: set[str] = set()
    for group in groups:
        columns = [group.column(number) for number in range(group.num_columns)]
        texts = [one for one in columns if _may_repeat(one)]
        if sum(one.total_uncompressed_size * one.num_values for one in texts) > BATCH_BYTES:
            paths.update(one.path_in_schema for one in texts)
    buffer = BATCH_BYTES // max(1, metadata.num_columns)
    return Reading(
        tuple(_rows_at_once(group) for group in groups),
        sorted(paths),
        min(_MOST_BUFFER, max(_LEAST_BUFFER, buffer)),
    )


def _may_repeat(column: Any) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page)


def _rows_at_once(group: Any) -> int:
    columns = (group.column(number) for number in range(group.num_columns))
    total: int = sum(
        max(one.total_uncompressed_size, one.num_values * _WIDTHS.get(one.physical_type, 16))
        for one in columns
    )
    rows: int = group.num_rows
    return max(1, min(_MOST_ROWS, BATCH_BYTES * rows // max(1, total)))
