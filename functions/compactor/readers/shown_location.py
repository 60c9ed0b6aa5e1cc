"""What a partition in the catalog shows, determined by its location."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from compactor.documents import require_object
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.readers.formats import SYMLINK_INPUT
from compactor.readers.manifests import (
    MANIFEST_NAME,
    decode_manifest,
    is_switch,
    manifest_prefix,
)
from compactor.readers.reader_catalog import CatalogEntry
from compactor.readers.states import Shown
from compactor.settings.settings import Settings

#: Partition parameters: the id of the last switch, and what it made the partition show.
SWITCH, SHOWN = "compactor.switch", "compactor.shows"


@dataclass(frozen=True, slots=True)
class Shows:
    """What a partition shows.

    Attributes:
        shown: None if none of our switches left it so.
        switch: id of the switch that did; empty if the entry names none.
        location: as the catalog has it.
    """

    shown: Shown | None
    switch: str
    location: str


def shows_of(entry: CatalogEntry, settings: Settings, partition: Partition) -> Shows:
    """Return what engines read for a catalog entry."""
    switch = entry.parameters.get(SWITCH, "")
    switch = switch if is_switch(switch) else ""
    symlink = entry.input_format == SYMLINK_INPUT
    for shown in Shown:
        location = location_of(shown, settings, partition, switch)
        if _plain(entry.location) == location and symlink == (shown is Shown.LISTED) and switch:
            return Shows(shown, switch, entry.location)
    return Shows(None, switch, entry.location)


def location_of(shown: Shown, settings: Settings, partition: Partition, switch: str) -> str:
    """Return the location of a partition's objects, or of their list; ends in ``/``."""
    if shown is Shown.RAW:
        bucket, prefix = partition.bucket, partition.prefix
    elif shown is Shown.COMPACTED:
        bucket, prefix = settings.outputs_of(partition)
    else:
        bucket, prefix = manifest_prefix(settings, partition, switch)
    return f"s3://{bucket}/{prefix}"


def names_in(
    shows: Shows, settings: Settings, partition: Partition, store: ObjectStore
) -> Collection[tuple[str, str]]:
    """Return bucket and key of the objects in the list that a partition shows.

    Raises:
        IntegrityError: the list is gone or damaged.
    """
    bucket, prefix = manifest_prefix(settings, partition, shows.switch)
    key = prefix + MANIFEST_NAME
    remedy = f"{partition.path} shows it; compactor table refresh writes it again"
    return decode_manifest(require_object(store, (bucket, key), remedy), f"s3://{bucket}/{key}")


def _plain(location: str) -> str:
    """Normalise a location: others write ``s3a``, or leave out the trailing slash."""
    scheme, _, rest = location.partition("://")
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest.removesuffix('/')}/"
