"""Iceberg catalogs, by pyiceberg: Glue, a REST catalog, or a local one."""

from __future__ import annotations

from pyiceberg.catalog import Catalog, load_catalog

from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.table_formats.answers import translated
from compactor.table_formats.file_io import properties_of


def iceberg_catalog(address: TableAddress, store: ObjectStore) -> Catalog:
    """Return the catalog of a table.

    Args:
        address: of the table.
        store: the store of the tables' files; it must outlive the catalog.

    Raises:
        InvalidInput: there are no credentials, or they are rejected.
        TransientStoreError: the catalog does not answer.
    """
    given = {"type": address.kind, **properties_of(store)}
    if address.uri:
        given["uri"] = address.uri
    with translated(address.text):
        return load_catalog(address.catalog, **given)
