"""How much of a Parquet object to read as one batch, so that rows of any shape fit into memory.

A footer states encoded sizes. Values that repeat take next to no space there: a million rows of one
long text are a dictionary of one value. Such columns are read as dictionaries, and decoded in parts
of a bounded size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.encoding.parquet_footer import ColumnChunk, RowGroup
from compactor.sizes import MIB

#: Memory for the rows of one batch, decoded.
BATCH_BYTES = 32 * MIB
_MOST_ROWS = 1 << 20
# Each column chunk has a buffer of its own while it is read.
_MOST_BUFFER, _LEAST_BUFFER = MIB, 4 * 1024
_BYTE_ARRAY = 6
# Bytes of a value in memory, or of the offset of a text, by the number of the physical type. Values
# of a fixed length count as 16.
_WIDTHS = (1, 4, 8, 8, 4, 8, 5, 16)


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read one object.

    Attributes:
        batch_rows: rows of a batch, for each row group.
        as_dictionaries: paths of the columns to read as dictionaries.
        buffer_bytes: size of the buffer of each column chunk.
    """

    batch_rows: tuple[int, ...]
    as_dictionaries: tuple[str, ...]
    buffer_bytes: int


def plan_reading(groups: Sequence[RowGroup]) -> Reading:
    """Decide how to read an object with these row groups.

    The sizes come from our own reader of footers: Arrow ends the process when it is asked for those
    of a damaged column chunk.
    """
    paths: set[str] = set()
    for group in groups:
        texts = [one for one in group.chunks if one.physical == _BYTE_ARRAY and one.has_dictionary]
        if sum(one.encoded_bytes * one.values for one in texts) > BATCH_BYTES:
            paths.update(one.path for one in texts)
    columns = max((len(group.chunks) for group in groups), default=0)
    return Reading(
        tuple(_batch_rows(group) for group in groups),
        tuple(sorted(paths)),
        min(_MOST_BUFFER, max(_LEAST_BUFFER, BATCH_BYTES // max(1, columns))),
    )


def _batch_rows(group: RowGroup) -> int:
    total = sum(map(_least_bytes, group.chunks))
    return max(1, min(_MOST_ROWS, BATCH_BYTES * group.rows // max(1, total)))


def _least_bytes(chunk: ColumnChunk) -> int:
    width = _WIDTHS[chunk.physical] if 0 <= chunk.physical < len(_WIDTHS) else max(_WIDTHS)
    return max(chunk.encoded_bytes, chunk.values * width)
