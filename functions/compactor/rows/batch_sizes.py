"""How much of a Parquet object to read as one batch, so that rows of any shape fit into memory.

A footer states encoded sizes. Values that repeat take next to no space there: a million rows of one
long text are a dictionary of one value. Such columns are read as dictionaries, and decoded in parts
of a bounded size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from compactor.encoding.parquet_file import column_chunks
from compactor.sizes import MIB

#: Memory for the rows of one batch, decoded.
BATCH_BYTES = 32 * MIB
_MOST_ROWS = 1 << 20
# Each column chunk has a buffer of its own while it is read.
_MOST_BUFFER, _LEAST_BUFFER = MIB, 4 * 1024
# Bytes of a value in memory, or of the offset of a text, by physical type. Values of a fixed length
# count as 16.
_WIDTHS = {
    "BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 5,
}  # fmt: skip
_WIDEST = 16


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read one object.

    Attributes:
        batch_rows: rows of a batch, for each row group.
        as_dictionaries: paths of the columns to read as dictionaries.
        buffer_bytes: size of the buffer of each column chunk.
        codec: of the first column chunk, such as ``snappy``; empty if there is no chunk.
    """

    batch_rows: tuple[int, ...]
    as_dictionaries: tuple[str, ...]
    buffer_bytes: int
    codec: str


def plan_reading(file: pq.ParquetFile) -> Reading:
    """Decide how to read an object.

    Raises:
        UnreadableSource: a column chunk is encrypted, or damaged.
    """
    paths: set[str] = set()
    rows: list[int] = []
    codec = ""
    for number in range(file.num_row_groups):
        chunks = list(column_chunks(file, number))
        texts = [one for one in chunks if _is_dictionary_of_texts(one)]
        if sum(one.total_uncompressed_size * one.num_values for one in texts) > BATCH_BYTES:
            paths.update(one.path_in_schema for one in texts)
        rows.append(_batch_rows(file.metadata.row_group(number).num_rows, chunks))
        codec = codec or (chunks[0].compression.lower() if chunks else "")
    columns = len(file.schema)
    return Reading(
        tuple(rows),
        tuple(sorted(paths)),
        min(_MOST_BUFFER, max(_LEAST_BUFFER, BATCH_BYTES // max(1, columns))),
        "none" if codec == "uncompressed" else codec,
    )


def _is_dictionary_of_texts(chunk: Any) -> bool:
    return chunk.physical_type == "BYTE_ARRAY" and bool(chunk.has_dictionary_page)


def _batch_rows(rows: int, chunks: Sequence[Any]) -> int:
    total = sum(map(_least_bytes, chunks))
    return max(1, min(_MOST_ROWS, BATCH_BYTES * rows // max(1, total)))


def _least_bytes(chunk: Any) -> int:
    width = _WIDTHS.get(chunk.physical_type, _WIDEST)
    return int(max(chunk.total_uncompressed_size, chunk.num_values * width))
