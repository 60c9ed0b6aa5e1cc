"""Opens the table or inventory that settings name."""

from __future__ import annotations

from importlib.util import find_spec

from compactor.errors import InvalidInput
from compactor.inventory.source import Inventory, open_delivered
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.tables import DELTA, TableAddress
from compactor.sinks.table_catalog import TableCatalog
from compactor.table_formats.installed import require_installed

_READS_TABLES = ("pyiceberg", "pyarrow")


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


def open_inventory(settings: Settings, store: ObjectStore, begun: str) -> Inventory:
    """Open the inventory that settings name, delivered as files or kept as a table.

    Args:
        settings: of a run that reads an inventory.
        store: where it is.
        begun: the ``uri`` of the inventory that an earlier call started on; empty for the newest.

    Raises:
        InvalidInput: there is no inventory, it is not one of the source's bucket, or a library
            needed to read it is not installed.
        IntegrityError: one of its checksums does not match.
        TransientStoreError: the catalog did not answer.
    """
    if settings.listing_source.table is None:
        return open_delivered(settings, store, begun)
    if any(find_spec(name) is None for name in _READS_TABLES):
        accepted = (
            "an S3 Inventory instead, or more than the base install: pip install"
            " 's3-compactor[iceberg]'; in a deployment, one that was made with this listing"
        )
        raise InvalidInput("listing", settings.listing, accepted)
    from compactor.catalogs.live_inventory import open_live  # noqa: PLC0415 - an extra

    return open_live(settings, store, begun)


def _open(address: TableAddress, settings: Settings, store: ObjectStore) -> TableCatalog:
    extra = "delta" if address.kind == DELTA else "iceberg"
    require_installed(extra, address.text)
    if extra == "delta":
        from compactor.catalogs.delta import DeltaCatalog  # noqa: PLC0415 - one of two extras

        return DeltaCatalog(address, settings, store)
    from compactor.catalogs.iceberg import IcebergCatalog  # noqa: PLC0415 - one of two extras

    return IcebergCatalog(address, settings, store)
