"""What a partition shows as the catalog has it: by its location, whatever else it says."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from compactor import layout
from compactor.errors import IntegrityError, ObjectMissing
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

#: Parameters of a partition that say which switch left it as it is, and what it shows.
SWITCH, SHOWN = "compactor.switch", "compactor.shows"


@dataclass(frozen=True, slots=True)
class Shows:
    """What a partition shows.

    Attributes:
        shown: None for something that no switch of ours left.
        switch: id of the switch that left it; empty where the entry names none.
        location: as the catalog has it.
    """

    shown: Shown | None
    switch: str
    location: str


def shows_of(entry: CatalogEntry, settings: Settings, partition: Partition) -> Shows:
    """What the catalog's entry makes engines read."""
    switch = entry.parameters.get(SWITCH, "")
    switch = switch if is_switch(switch) else ""
    symlink = entry.input_format == SYMLINK_INPUT
    for shown in Shown:
        location = location_of(shown, settings, partition, switch)
        if _plain(entry.location) == location and symlink == (shown is Shown.LISTED) and switch:
            return Shows(shown, switch, entry.location)
    return Shows(None, switch, entry.location)


def location_of(shown: Shown, settings: Settings, partition: Partition, switch: str) -> str:
    """Where a partition's objects, or the list of them, lie; ends in ``/``."""
    if shown is Shown.RAW:
        bucket, prefix = partition.bucket, partition.prefix
    elif shown is Shown.COMPACTED:
        bucket, prefix = layout.output_prefix(settings, partition)
    else:
        bucket, prefix = manifest_prefix(settings, partition, switch)
    return f"s3://{bucket}/{prefix}"


def names_in(
    shows: Shows, settings: Settings, partition: Partition, store: ObjectStore
) -> Collection[tuple[str, str]]:
    """Bucket and key of the objects in the list that a partition shows.

    Raises:
        IntegrityError: it is gone, or damaged.
    """
    bucket, prefix = manifest_prefix(settings, partition, shows.switch)
    where = f"s3://{bucket}/{prefix}{MANIFEST_NAME}"
    try:
        body = store.get(bucket, prefix + MANIFEST_NAME)
    except ObjectMissing:
        raise IntegrityError(f"{where} is gone, which {partition.path} shows") from None
    return decode_manifest(body, where)


def _plain(location: str) -> str:
    """A location as this program writes it: engines and people write ``s3a`` and no last slash."""
    scheme, _, rest = location.partition("://")
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest.removesuffix('/')}/"
