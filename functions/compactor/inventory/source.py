"""What an inventory is to its caller: files of rows, in an order that stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from compactor.errors import InvalidInput
from compactor.inventory.inventory_manifest import FIELD, Manifest, manifest_uri, read_manifest
from compactor.inventory.rows import Row, rows_of
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


class Inventory(Protocol):
    """An inventory of a source's bucket, as it was at one time."""

    @property
    def uri(self) -> str:
        """Names it for people, and for the calls that continue it."""
        ...

    @property
    def md5(self) -> str:
        """Names it for certain, in hexadecimal."""
        ...

    @property
    def created_at(self) -> float:
        """What is newer is not in it, UNIX seconds."""
        ...

    @property
    def files(self) -> int:
        """How many files it has."""
        ...

    def rows(self, number: int, prefix: str) -> Iterator[Row]:
        """What one file, counted from 0, says of keys below a prefix; in any order."""
        ...


#: Opens the inventory that settings name: the very one that an earlier call began to take, by its
#: ``uri``, or, where that is empty, the newest.
Opens = Callable[[Settings, ObjectStore, str], Inventory]


class DeliveredInventory:
    """One that S3 delivers as files, with a manifest.

    Args:
        manifest: what S3 says of it.
        store: where the files are.
    """

    def __init__(self, manifest: Manifest, store: ObjectStore) -> None:
        self._manifest, self._store = manifest, store
        self.uri, self.md5 = manifest.uri, manifest.md5
        self.created_at = manifest.created_at
        self.files = len(manifest.files)

    def rows(self, number: int, prefix: str) -> Iterator[Row]:
        """The current objects below a prefix, in the order of the file.

        Raises:
            IntegrityError: as :func:`rows_of` does.
        """
        return rows_of(self._manifest.files[number], self._manifest, self._store, prefix)


def open_delivered(settings: Settings, store: ObjectStore, begun: str) -> DeliveredInventory:
    """The inventory that a manifest describes.

    Raises:
        InvalidInput: there is none, it is of another bucket, or leaves out what is needed.
        IntegrityError: its manifest is not what its checksum says.
    """
    bucket = settings.source.root.bucket
    uri = begun or manifest_uri(settings.listing_source.manifest_uri or "", store)
    manifest = read_manifest(uri, store)
    if manifest.source_bucket != bucket:
        accepted = f"an inventory of the source's bucket {bucket}"
        raise InvalidInput(FIELD, uri, f"{accepted}; this one is of {manifest.source_bucket}")
    return DeliveredInventory(manifest, store)
