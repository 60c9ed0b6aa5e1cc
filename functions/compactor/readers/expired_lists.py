"""Lists of objects that no partition shows any more, and the records of their switches.

A list goes once the catalog has been seen for the grace's time to show something else, which was
switched to later. Queries that were planned by the list have ended by then, and the writer that
stored it without switching to it will not do so any more (readers/refresh.py). Each list has an id
of its own, so none comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor import layout
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
    """What became of one partition's.

    Attributes:
        path: of the partition.
        lists: that went, or would go.
        kept: that no query is planned by any more either, and that go later.
        fault: why they, or others, stay until an operator acts; empty where nothing is
            amiss.
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
    """Delete what no reader can need any more. Safe to run again, and beside everything else.

    Args:
        partition: of the table.
        settings: of the runs; they name the table.
        catalog: of that.
        store: taking the ways that are safe for deletes.
        clock: ours.
        deletes: False for what would go.

    Raises:
        TransientStoreError: the store or the catalog did not answer.
        InvalidInput: one of them may not be asked.
    """
    # Before the catalog is asked: what is made meanwhile is not among them.
    lists = _made(*manifests_below(settings, partition), f"/{MANIFEST_NAME}", store)
    if not lists:
        return OldLists(partition.path)
    try:
        asked = ask(catalog, settings, partition, store, clock, notes=deletes)
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
            # A record stays for as long as there is a list that it is about.
            records = _made(*layout.switches_below(settings.state, partition), ".json", store)
            fault = _drop([one for switch, one in records.items() if switch in old], store)
    return OldLists(partition.path, len(old), len(others) - len(old), fault)


def _made(bucket: str, prefix: str, suffix: str, store: ObjectStore) -> dict[str, SourceObject]:
    """What this program has written below a prefix, by the id of its switch."""
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
    """Whether a list was stored before the switch that stands, and that stands for long enough."""
    since = asked.since
    return since is not None and asked.has_stood(grace) and one.last_modified <= since


def _drop(objects: Sequence[SourceObject], store: ObjectStore) -> str:
    """Delete some; why one of them could not be, in one line, and empty where all are gone."""
    for refused in store.delete_sources(objects).refused:
        return f"{refused.key}: {refused.reason}"
    return ""
