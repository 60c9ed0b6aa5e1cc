"""Opens the table that settings name."""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.tables import DELTA, TableAddress
from compactor.sinks.table_catalog import TableCatalog
from compactor.table_formats.installed import require_installed


def open_catalog(settings: Settings, store: ObjectStore) -> TableCatalog:
    """Return the catalog of the table that settings name. Sends no request.

    Args:
        settings: of the run; they name a table.
        store: where outputs and the table's files are.

    Raises:
        InvalidInput: there is no such catalog, or a required library is not installed.
    """
    address = settings.table_address
    if address is None:
        raise InvalidInput("table", None, "the address of a table")
    rows = _open(address, settings, store)
    if not settings.upsert_key:
        return rows
    from compactor.catalogs.keyed import KeyedCatalog  # noqa: PLC0415 - few tables have a key

    return KeyedCatalog(rows, _open(address.keys, settings, store))


def _open(address: TableAddress, settings: Settings, store: ObjectStore) -> TableCatalog:
    extra = "delta" if address.kind == DELTA else "iceberg"
    require_installed(extra, address.text)
    if extra == "delta":
        from compactor.catalogs.delta import DeltaCatalog  # noqa: PLC0415 - one of two extras

        return DeltaCatalog(address, settings, store)
    from compactor.catalogs.iceberg import IcebergCatalog  # noqa: PLC0415 - one of two extras

    return IcebergCatalog(address, settings, store)
