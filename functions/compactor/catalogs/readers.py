"""Opens the catalog of the readers' table."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from compactor.errors import InvalidInput
from compactor.settings.reader_table import parse_reader_table

if TYPE_CHECKING:
    from compactor.readers.reader_catalog import ReaderCatalog


@lru_cache(8)
def open_readers(table: str) -> ReaderCatalog:
    """Return the catalog of a readers' table. Sends no request.

    Args:
        table: value of ``reader_table``.

    Raises:
        InvalidInput: it is not a supported table.
    """
    try:
        address = parse_reader_table(table)
    except ValueError as error:
        raise InvalidInput("reader_table", table, str(error)) from None
    # Nine runs in ten have no readers' table, and need no Glue client.
    from compactor.aws.glue_reader import GlueReader  # noqa: PLC0415 - see above

    return GlueReader(address)
