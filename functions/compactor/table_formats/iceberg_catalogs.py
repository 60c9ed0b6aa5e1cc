"""The catalogs of Iceberg tables, by pyiceberg: Glue's, a REST catalog, or one of this machine."""

from __future__ import annotations

from pyiceberg.catalog import Catalog, load_catalog

from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.table_formats.answers import translated
from compactor.table_formats.file_io import properties_of


def iceberg_catalog(address: TableAddress, store: ObjectStore) -> Catalog:
    """The catalog that an address names.

    Args:
        address: of a table in it.
        store: where its tables' files are; it must outlive the catalog.

    Raises:
        InvalidInput: there are no credentials, or they are no good.
        TransientStoreError: the catalog does not answer.
    """
    given = {"type": address.kind, **properties_of(store)}
    if address.uri:
        given["uri"] = address.uri
    with translated(address.text):
        return load_catalog(address.catalog, **given)
