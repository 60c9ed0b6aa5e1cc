"""Tags the data files of Delta tables that a rewrite replaced, for a lifecycle rule to move them.

Until VACUUM, only old versions read such a file. It is marked by a tag, because live files of the
table share its prefix. No file of the current version may have the tag, and a RESTORE makes old
files live again. So:

- the list of files that a run may tag is stored before the first is tagged, so that a later run
  finds them, however the run ended;
- before each batch the table's current version is read, and its files are left out;
- after each batch it is read again, and files that became live meanwhile are untagged;
- each run begins by untagging live files, and our own RESTORE by untagging all files.

Not guaranteed: a RESTORE by another writer is only noticed by the next run. And a tag that another
writer sets between our GET of a file's tags and our PUT is lost, because S3 has no conditional
requests for tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol
from urllib.parse import unquote

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.errors import ObjectMissing
from compactor.model import SourceObject
from compactor.ports import TaggedStore
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import DONE, MaintenanceReceipt

#: Key and value of the tag, which a lifecycle rule filters by.
TAG, VALUE = "s3-compactor", "superseded"
SUPERSEDED_VERSION = 1
_BATCH = 500
_CONCURRENT = 16
# S3's limit of tags per object. A file that has that many from its owner is not tagged.
_MOST_TAGS = 10
_SCHEMES = ("s3://", "s3a://", "s3n://")
_LOG = "_delta_log/"


class Live(NamedTuple):
    """The live files of a version of a Delta table.

    Attributes:
        version: its number.
        keys: of its data files in the bucket of the table.
    """

    version: int
    keys: frozenset[str]


class TableFiles(Protocol):
    """The live files of a Delta table. May raise TransientStoreError and InvalidInput."""

    def current(self) -> Live:
        """Read the newest version."""
        ...


class Superseded(msgspec.Struct, kw_only=True):
    """The files of a table that a run may have tagged.

    Attributes:
        table: its address.
        run_id: of the run.
        keys: of the files, in the table's bucket.
    """

    table: str
    run_id: str
    keys: list[str]


@dataclass(slots=True)
class Tagging:
    """The result of tagging, in numbers of files.

    Attributes:
        tagged: received the tag.
        untagged: had the tag, and lost it.
        alive: were not tagged because they are live.
        full: were not tagged because they have ten tags from their owner.
        gone: no longer exist.
    """

    tagged: int = 0
    untagged: int = 0
    alive: int = 0
    full: int = 0
    gone: int = 0

    @property
    def line(self) -> str:
        """Human-readable summary in one line."""
        line = f"{self.tagged:,} files tagged, {self.untagged:,} untagged"
        return f"{line}, {self.full:,} with ten other tags" if self.full else line


_decode = decoder(Superseded)


class _Action(msgspec.Struct):
    """The ``remove`` action of a line of the table's log, if it is one."""

    class Remove(msgspec.Struct, rename="camel"):
        path: str
        data_change: bool = True

    remove: Remove | None = None


_decode_action = decoder(_Action)


@dataclass(frozen=True, slots=True)
class SupersededFiles:
    """The superseded files of one table.

    Attributes:
        state: of the runs.
        table: a Delta table's address.
        store: where table and state lie.
        files: reads the live files of the table.
    """

    state: S3Uri
    table: TableAddress
    store: TaggedStore
    files: TableFiles

    def tag(self, receipt: MaintenanceReceipt) -> Tagging:
        """Tag the files that a run's rewrite replaced. Safe to repeat.

        Args:
            receipt: of that run.

        Raises:
            IntegrityError: a list of earlier runs, or the table's log, is damaged.
            TransientStoreError: the store did not answer; files tagged so far are on the run's
                list.
        """
        done = Tagging()
        seen = self._untag_again(None, done)
        replaced = sorted({*self._of_receipt(receipt), *self._of_log(receipt)})
        if not replaced:
            return done
        # Before the first tag, so that the files of a killed run can be found.
        self._note(receipt.run_id, replaced)
        for batch in _batches(replaced, _BATCH):
            dead = self._dead(batch)
            done.alive += len(batch) - len(dead)
            _count(done, self._each(self._tag_one, dead))
            seen = self._untag_again(seen, done)
        return done

    def untag_all(self) -> Tagging:
        """Untag all files that may have the tag. Called before an older version is restored."""
        done = Tagging()
        noted = sorted({key for _, one in self._documents() for key in one.keys})
        _count(done, self._each(self._untag_one, noted))
        return done

    def forget_vacuumed(self) -> int:
        """Delete the lists of runs whose files have all been deleted. Called after VACUUM.

        Returns:
            The number of deleted documents.
        """
        documents = list(self._documents())
        if not documents:
            return 0
        noted = {key for _, one in documents for key in one.keys}
        left: set[str] = set()
        for page in self.store.list_objects(self._place.bucket, self._place.prefix):
            left.update(one.key for one in page if one.key in noted)
        gone = [source for source, one in documents if left.isdisjoint(one.keys)]
        return len(gone) - len(self.store.delete_sources(gone).refused) if gone else 0

    @property
    def _place(self) -> S3Uri:
        place = self.table.location
        assert place is not None  # noqa: S101 - such are the addresses of Delta tables
        return place

    def _dead(self, keys: Sequence[str]) -> list[str]:
        live = self.files.current().keys
        return [key for key in keys if key not in live]

    def _untag_again(self, seen: Live | None, done: Tagging) -> Live:
        """Untag the live files on the lists of all runs, unless the version is still ``seen``.

        Returns:
            The current version.
        """
        now = self.files.current()
        if now != seen:
            alive = {key for _, one in self._documents() for key in one.keys if key in now.keys}
            _count(done, self._each(self._untag_one, sorted(alive)))
        return now

    def _each(self, work: Callable[[str], str], keys: Sequence[str]) -> list[str]:
        if not keys:
            return []
        with ThreadPoolExecutor(min(_CONCURRENT, len(keys))) as pool:
            return list(pool.map(work, keys))

    def _tag_one(self, key: str) -> str:
        """Add the tag to an object's tags; return the name of the counter to increase, or empty."""
        bucket = self._place.bucket
        try:
            tags = dict(self.store.tags(bucket, key))
            if tags.get(TAG) == VALUE:
                return ""
            if len(tags) >= _MOST_TAGS and TAG not in tags:
                return "full"
            self.store.put_tags(bucket, key, tags | {TAG: VALUE})
        except ObjectMissing:
            return "gone"
        return "tagged"

    def _untag_one(self, key: str) -> str:
        bucket = self._place.bucket
        try:
            tags = dict(self.store.tags(bucket, key))
            if tags.get(TAG) != VALUE:
                return ""
            del tags[TAG]
            self.store.put_tags(bucket, key, tags)
        except ObjectMissing:
            return ""
        return "untagged"

    def _of_receipt(self, receipt: MaintenanceReceipt) -> Iterator[str]:
        for uri in receipt.superseded:
            scheme = next((one for one in _SCHEMES if uri.startswith(one)), None)
            bucket, _, key = uri.removeprefix(scheme or "").partition("/")
            if scheme and bucket == self._place.bucket and self._is_data(key):
                yield key

    def _of_log(self, receipt: MaintenanceReceipt) -> Iterator[str]:
        """Return the keys removed by the receipt's versions; its own list ends at 10,000."""
        for one in receipt.of(DONE):
            if one.after.isdecimal():
                yield from self._removed_by(int(one.after))

    def _removed_by(self, version: int) -> Iterator[str]:
        place = self._place
        try:
            body = self.store.get(place.bucket, f"{place.prefix}{_LOG}{version:020d}.json")
        except ObjectMissing:
            # The log entry is past its retention; VACUUM may have deleted its files by then.
            return
        for line in filter(None, body.split(b"\n")):
            removed = _decode_action(line).remove
            # A removal with data_change is not from a rewrite, but another writer's DELETE.
            if removed is not None and not removed.data_change and "://" not in removed.path:
                key = place.prefix + unquote(removed.path)
                if self._is_data(key):
                    yield key

    def _is_data(self, key: str) -> bool:
        """Return whether a key is a data file of this table.

        Files outside of its location are shared with another table, and are not tagged.
        """
        prefix = self._place.prefix
        return key.startswith(prefix) and not key.startswith(prefix + _LOG)

    def _note(self, run_id: str, keys: list[str]) -> None:
        bucket, prefix = places.superseded_prefix(self.state, self.table)
        place = (bucket, f"{prefix}{run_id}.json")
        document = Superseded(table=self.table.text, run_id=run_id, keys=keys)
        leave_document(self.store, place, document, SUPERSEDED_VERSION)

    def _documents(self) -> Iterator[tuple[SourceObject, Superseded]]:
        bucket, prefix = places.superseded_prefix(self.state, self.table)
        for page in self.store.list_objects(bucket, prefix):
            for one in page:
                place = (bucket, one.key)
                found = find_document(self.store, place, _decode, SUPERSEDED_VERSION)
                if found is not None:
                    yield one, found


def _count(sums: Tagging, done: Iterable[str]) -> None:
    for name in filter(None, done):
        setattr(sums, name, getattr(sums, name) + 1)


def _batches(keys: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(keys)
    while batch := list(islice(left, size)):
        yield batch
