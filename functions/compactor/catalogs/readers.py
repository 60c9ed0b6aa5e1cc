"""Which catalog has the readers' table."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from compactor.errors import InvalidInput
from compactor.settings.reader_table import parse_reader_table

if TYPE_CHECKING:
    from compactor.readers.reader_catalog import ReaderCatalog


@lru_cache(8)
def open_readers(table: str) -> ReaderCatalog:
    """The catalog of a table; nothing is asked of it yet.

    Args:
        table: as ``reader_table`` has it.

    Raises:
        InvalidInput: it is no such table.
    """
    try:
        address = parse_reader_table(table)
    except ValueError as error:
        raise InvalidInput("reader_table", table, str(error)) from None
    # Nine runs in ten have no such table, and need no client of Glue.
    from compactor.aws.glue_reader import GlueReader  # noqa: PLC0415 - see above

    return GlueReader(address)
