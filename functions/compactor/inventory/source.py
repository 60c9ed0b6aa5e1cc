"""The Inventory protocol, files of rows in a fixed order, and S3's delivered inventories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from compactor.errors import InvalidInput
from compactor.inventory.inventory_manifest import FIELD, Manifest, manifest_uri, read_manifest
from compactor.inventory.rows import Row, rows_of
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


class Inventory(Protocol):
    """An inventory of a source's bucket at one time."""

    @property
    def uri(self) -> str:
        """Name of the inventory, for messages and for the calls that continue with it."""
        ...

    @property
    def md5(self) -> str:
        """Digest that identifies the inventory, in hexadecimal."""
        ...

    @property
    def created_at(self) -> float:
        """Time of the inventory, UNIX seconds; newer objects are not in it."""
        ...

    @property
    def files(self) -> int:
        """Number of files."""
        ...

    def rows(self, number: int, prefix: str) -> Iterator[Row]:
        """Yield the rows of one file, numbered from 0, for keys below a prefix, in any order."""
        ...


#: Opens the inventory of the settings: the one with the given ``uri``, which an earlier call began
#: to sort, or the newest if ``uri`` is empty.
Opens = Callable[[Settings, ObjectStore, str], Inventory]


class DeliveredInventory:
    """An inventory that S3 delivered as files with a manifest.

    Args:
        manifest: its manifest.
        store: where the files are.
    """

    def __init__(self, manifest: Manifest, store: ObjectStore) -> None:
        self._manifest, self._store = manifest, store
        self.uri, self.md5 = manifest.uri, manifest.md5
        self.created_at = manifest.created_at
        self.files = len(manifest.files)

    def rows(self, number: int, prefix: str) -> Iterator[Row]:
        """Yield the current objects below a prefix, in the order of the file.

        Raises:
            IntegrityError: see :func:`rows_of`.
        """
        return rows_of(self._manifest.files[number], self._manifest, self._store, prefix)


def open_delivered(settings: Settings, store: ObjectStore, begun: str) -> DeliveredInventory:
    """Open the delivered inventory at ``begun``, or the one that the settings name.

    Raises:
        InvalidInput: there is no inventory, it is of another bucket, or it lacks a required field.
        IntegrityError: its manifest does not match its checksum.
    """
    bucket = settings.source.root.bucket
    uri = begun or manifest_uri(settings.listing_source.manifest_uri or "", store)
    manifest = read_manifest(uri, store)
    if manifest.source_bucket != bucket:
        accepted = f"an inventory of the source's bucket {bucket}"
        raise InvalidInput(FIELD, uri, f"{accepted}; this one is of {manifest.source_bucket}")
    return DeliveredInventory(manifest, store)
