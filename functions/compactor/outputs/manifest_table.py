"""The manifest table: where the content of each source is, as Parquet for query engines.

It is made of the commit log, entry by entry, and is never asked by anything of this program. An
object belongs to one commit, or to what one commit tells of another's content, and is created once:
with its rows, or, once one of these commits is void, with columns alone, which are written over
rows as well. Nobody writes rows over anything. So whoever is late, was killed, or does it a second
time leaves the same table, and the note of how far it is may be old.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from compactor import layout
from compactor.codecs.parquet_footer import read_footer
from compactor.codecs.parquet_writer import write_parquet
from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.errors import AlreadyExists, IntegrityError
from compactor.log.entries import Commit
from compactor.log.stored import read_entry
from compactor.model import Again
from compactor.outputs.mapping import COLUMNS, Mapped, mapped
from compactor.ports import Deadline, ObjectStore
from compactor.settings.uris import S3Uri

THROUGH_VERSION = 1
_MEDIA_TYPE = "application/vnd.apache.parquet"
# What stands behind layout.sources_of in a key.
_REST = re.compile(r"(?:-\d{20})?\.parquet")
# An entry, its Parquet object and what ends the call take less.
_RESERVE_SECONDS = 15.0
_NO_ROWS = write_parquet(COLUMNS, ())


class Through(msgspec.Struct, frozen=True):
    """How far the manifest table is in a partition.

    Attributes:
        sequence: of the last entry that is in it, as all before it are; 0 for none.
        commit_id: of that entry.
    """

    sequence: int = 0
    commit_id: str = ""


_decode = decoder(Through)
_NONE = Through()


@dataclass(frozen=True, slots=True)
class KnownLog:
    """What whoever brings the table up to date knows of the log.

    Attributes:
        last: sequence of the last entry to be told of; it and all before it are published.
        since: all void ones are in ``replaced`` that entries behind this sequence make so.
        replaced: sequences of void entries.
        commit_ids: of some entries, by sequence.
    """

    last: int
    since: int
    replaced: Collection[int] = frozenset()
    commit_ids: Mapping[int, str] = field(default_factory=dict)


class ManifestTable:
    """What the table has of one partition.

    Args:
        state: where all state lies.
        path: of the partition.
        store: where it is.
    """

    def __init__(self, state: S3Uri, path: str, store: ObjectStore) -> None:
        self._state = state
        self._path = path
        self._store = store

    def through(self) -> Through | None:
        """How far it is; None where it has nothing of this partition.

        Raises:
            IntegrityError: that is damaged, or a later version of this program wrote it.
        """
        return find_document(self._store, self._note, _decode, THROUGH_VERSION)

    def catch_up(self, log: KnownLog, deadline: Deadline) -> int:
        """Let it tell of all of these entries, as far as time allows.

        Safe to run again, and at once.

        Returns:
            How many entries it does not tell of yet.

        Raises:
            IntegrityError: the table was made of another log, or an entry is damaged.
            TransientStoreError: the store did not answer.
        """
        if not log.last:
            return 0
        before = self.through() or _NONE
        self._require_same(before, log)
        if before.sequence >= log.last:
            return 0
        void = self._void(before.sequence, log, deadline)
        if void is None:
            return log.last - before.sequence
        for sequence in sorted(one for one in void if one <= before.sequence):
            self._withdraw(sequence)
        done = before
        for sequence in range(before.sequence + 1, log.last + 1):
            if _is_over(deadline):
                break
            done = self._enter(sequence, void)
        if done is not before:
            leave_document(self._store, self._note, done, THROUGH_VERSION)
        return log.last - done.sequence

    @property
    def _note(self) -> tuple[str, str]:
        return self._at(layout.through_name(self._path))

    def _at(self, name: str) -> tuple[str, str]:
        return self._state.bucket, self._state.prefix + name

    def _require_same(self, before: Through, log: KnownLog) -> None:
        if log.commit_ids.get(before.sequence, before.commit_id) != before.commit_id:
            bucket, prefix = self._at(layout.MANIFEST)
            raise IntegrityError(
                f"the manifest table was made of another log of {self._path or '(root)'}: delete"
                f" all below s3://{bucket}/{prefix}, and make it anew by `compactor manifest DEST"
                " --manifest-table`"
            )

    def _void(self, told: int, log: KnownLog, deadline: Deadline) -> set[int] | None:
        """Sequences of the entries that are void by one the table does not tell of; None: no time.

        Known before the first is told of, so that no row is ever of a void one.
        """
        void = set(log.replaced)
        for sequence in range(told + 1, log.since + 1):
            if _is_over(deadline):
                return None
            replaces = self._read(sequence).replaces
            if replaces is not None:
                void.add(replaces)
        return void

    def _enter(self, sequence: int, void: Collection[int]) -> Through:
        """Tell of one entry."""
        commit = self._read(sequence)
        if commit.rows:
            name = layout.sources_name(self._path, commit.created_at, sequence)
            if sequence in void:
                self._empty(name)
            else:
                self._create(name, (mapped(self._path, commit, row) for row in commit.rows))
        for of, again in _by_holder(commit).items():
            holder = self._read(of)
            name = layout.sources_name(self._path, holder.created_at, of, sequence)
            # One that is void, for whatever entry, the table has emptied before.
            if sequence in void or self._is_withdrawn(holder):
                self._empty(name)
            else:
                self._create(name, self._told_again(holder, commit, again))
        return Through(sequence, commit.commit_id)

    def _told_again(self, holder: Commit, commit: Commit, again: list[Again]) -> Iterator[Mapped]:
        told: dict[tuple[str, str], list[Again]] = {}
        for one in again:
            told.setdefault((one.source.bucket, one.source.key), []).append(one)
        for row in holder.rows:
            for one in told.get((row.source.bucket, row.source.key), ()):
                yield mapped(self._path, holder, row, (one.source, commit))

    def _withdraw(self, sequence: int) -> None:
        """Let the table tell no more of an entry that it tells of, nor of its content."""
        commit = self._read(sequence)
        begin = layout.sources_of(self._path, commit.created_at, sequence)
        bucket, prefix = self._at(begin)
        names = {begin + ".parquet"} if commit.rows else set()
        for page in self._store.list_objects(bucket, prefix):
            rests = (one.key.removeprefix(prefix) for one in page)
            names |= {begin + rest for rest in rests if _REST.fullmatch(rest)}
        for of in _by_holder(commit):
            created_at = self._read(of).created_at
            names.add(layout.sources_name(self._path, created_at, of, sequence))
        for name in sorted(names):
            self._empty(name)

    def _is_withdrawn(self, holder: Commit) -> bool:
        """The table has no rows of an entry's content any more, which it had."""
        name = layout.sources_name(self._path, holder.created_at, holder.sequence)
        bucket, key = self._at(name)
        head = self._store.head(bucket, key)
        if head is None:
            return False

        def read_range(start: int, length: int) -> bytes:
            return self._store.get_range(bucket, key, start, length)

        return read_footer(read_range, head.size).rows == 0

    def _create(self, name: str, rows: Iterator[Mapped]) -> None:
        # Somebody was first: with the same rows, or with none.
        with suppress(AlreadyExists):
            body = write_parquet(COLUMNS, rows)
            self._store.create(*self._at(name), body, content_type=_MEDIA_TYPE)

    def _empty(self, name: str) -> None:
        self._store.put(*self._at(name), _NO_ROWS, content_type=_MEDIA_TYPE)

    def _read(self, sequence: int) -> Commit:
        key = self._state.prefix + layout.entry_name(self._path, sequence)
        return read_entry(self._store, self._state.bucket, key, sequence)


def _by_holder(commit: Commit) -> dict[int, list[Again]]:
    """What a commit says of sources that came again, by the commit that has their content."""
    found: dict[int, list[Again]] = {}
    for one in commit.again:
        found.setdefault(one.of, []).append(one)
    return found


def _is_over(deadline: Deadline) -> bool:
    return deadline.remaining_seconds() < _RESERVE_SECONDS
