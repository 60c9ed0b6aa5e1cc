"""Which catalog has the readers' table."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from compactor.errors import InvalidInput
from compactor.settings.readers import HIVE, parse_reader_table
from compactor.settings.tables import TableAddress

if TYPE_CHECKING:
    from compactor.readers.port import ReaderCatalog

_SPEAKS_HIVE = ("hive_metastore", "thrift")


@lru_cache(8)
def open_readers(table: str) -> ReaderCatalog:
    """The catalog of a table; nothing is asked of it yet.

    Args:
        table: as ``reader_table`` has it.

    Raises:
        InvalidInput: it is none, or what it takes is not installed.
    """
    try:
        address = parse_reader_table(table)
    except ValueError as error:
        raise InvalidInput("reader_table", table, str(error)) from None
    if address.kind == HIVE:
        return _in_hive(address)
    # Nine runs in ten have no such table, and need no client of Glue.
    from compactor.stores.glue_reader import GlueReader  # noqa: PLC0415 - see above

    return GlueReader(address)


def _in_hive(address: TableAddress) -> ReaderCatalog:
    if any(find_spec(name) is None for name in _SPEAKS_HIVE):
        accepted = (
            "glue:DATABASE.TABLE, or more than the base install: pip install 's3-compactor[hive]'"
        )
        raise InvalidInput("reader_table", address.text, accepted)
    from compactor.catalogs.hive_reader import HiveReader  # noqa: PLC0415 - an extra

    return HiveReader(address)
