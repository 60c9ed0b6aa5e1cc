"""Deletes lists of objects that no partition shows any more, and the records of their switches.

A list is deleted once the catalog has shown something else, from a later switch, for the grace
period. By then, queries that were planned with the list have finished, and a writer that stored the
list but did not switch to it no longer will (readers/refresh.py). Each list has a unique id, so a
deleted list never comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.errors import IntegrityError
from compactor.model import Partition, SourceObject
from compactor.ports import Clock, ObjectStore
from compactor.readers.clean_up_gate import Asked, ask
from compactor.readers.manifests import MANIFEST_NAME, is_switch, manifests_below
from compactor.readers.reader_catalog import ReaderCatalog
from compactor.readers.switch_records import read_marker
from compactor.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class OldLists:
    """The expired lists of one partition.

    Attributes:
        path: of the partition.
        lists: number that was deleted, or would be.
        kept: number that is no longer used for new queries either, and is deleted later.
        fault: why lists remain until an operator acts, in one line; empty if there is no
            problem.
    """

    path: str
    lists: int = 0
    kept: int = 0
    fault: str = ""


def drop_old_lists(
    partition: Partition,
    settings: Settings,
    catalog: ReaderCatalog,
    store: ObjectStore,
    clock: Clock,
    *,
    deletes: bool = True,
) -> OldLists:
    """Delete a partition's expired lists. Safe to repeat, and to run concurrently with anything.

    Args:
        partition: of the table.
        settings: of the runs; they name the table.
        catalog: of the table.
        store: a store whose transport is safe for deletes.
        clock: ours.
        deletes: False to only count what would be deleted.

    Raises:
        TransientStoreError: the store or the catalog did not answer.
        InvalidInput: access to one of them is not permitted.
    """
    # Listed before the catalog is queried, so that lists created meanwhile are not included.
    lists = _made(*manifests_below(settings, partition), f"/{MANIFEST_NAME}", store)
    if not lists:
        return OldLists(partition.path)
    try:
        asked = ask(catalog, settings, partition, store, clock)
    except IntegrityError as error:
        return OldLists(partition.path, fault=str(error))
    shows = asked.shows
    if shows is None or shows.shown is None:
        seen = "no such partition" if shows is None else f"{shows.location}, which no refresh left"
        fault = f"the catalog has {seen}: compactor table refresh puts it right"
        return OldLists(partition.path, fault=fault)
    others = {switch: one for switch, one in lists.items() if switch != shows.switch}
    grace = _grace(settings, store)
    old = {switch: one for switch, one in others.items() if _is_old(one, asked, grace)}
    fault = ""
    if deletes and old:
        fault = _drop([*old.values()], store)
        if not fault:
            # A switch record is kept as long as the list that it is about.
            records = _made(*settings.layout.switches(partition), ".json", store)
            fault = _drop([one for switch, one in records.items() if switch in old], store)
    return OldLists(partition.path, len(old), len(others) - len(old), fault)


def _made(bucket: str, prefix: str, suffix: str, store: ObjectStore) -> dict[str, SourceObject]:
    """Return the objects that this program wrote below a prefix, by switch id."""
    found: dict[str, SourceObject] = {}
    for page in store.list_objects(bucket, prefix):
        for one in page:
            switch = one.key[len(prefix) :].removesuffix(suffix)
            if one.key.endswith(suffix) and is_switch(switch):
                found[switch] = one
    return found


def _grace(settings: Settings, store: ObjectStore) -> int:
    marker = read_marker(settings.state, store)
    return settings.limits.reader_grace_seconds if marker is None else marker.grace_seconds


def _is_old(one: SourceObject, asked: Asked, grace: float) -> bool:
    """Return whether a list predates the current switch, and that is older than ``grace``."""
    since = asked.since
    return since is not None and asked.has_stood(grace) and one.last_modified <= since


def _drop(objects: Sequence[SourceObject], store: ObjectStore) -> str:
    """Delete objects; return why one of them could not be deleted, or an empty string."""
    for refused in store.delete_sources(objects).refused:
        return f"{refused.key}: {refused.reason}"
    return ""
