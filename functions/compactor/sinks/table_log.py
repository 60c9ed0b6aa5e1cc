"""The table log on S3: ``table/<n>.json``, each entry written with create-if-absent."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from compactor.decoding import decoder
from compactor.errors import CommitConflict, IntegrityError, ObjectMissing
from compactor.log.identity import WAY_OUT
from compactor.log.numbered import CHECKPOINT, Listed, NumberedLog
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.table_entries import (
    Acceptance,
    NamedOutput,
    PublishedMark,
    Reached,
    TableEntry,
    TableLogState,
    decode_checkpoint,
    decode_entry,
    encode,
)
from compactor.sinks.upserts import UpsertKey

_PUBLISHED = "published"
_JSON = "application/json"
# An entry has about 250 bytes an output; one checkpoint saves this many small reads.
_ENTRIES_A_CHECKPOINT = 32
_READERS = 16


class TableHint(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoint to start reading from. If missing or wrong, the whole log is listed."""

    version: int = 1
    checkpoint: int


_decode_hint = decoder(TableHint)


@dataclass(frozen=True, slots=True)
class Draft:
    """A table log entry before it has a number.

    Attributes:
        now: UNIX seconds.
    """

    table: str
    uuid: str
    run_id: str
    now: float
    outputs: Sequence[NamedOutput]
    through: Mapping[str, Reached]
    upsert: UpsertKey | None = None
    acceptance: Acceptance | None = None


class TableLog:
    """The table log of a destination.

    Args:
        store: where the log is.
        settings: of the run.
        log_id: identity of the state; entries of another state are rejected.
    """

    def __init__(self, store: ObjectStore, settings: Settings, log_id: str) -> None:
        self._store = store
        self._settings = settings
        self._log_id = log_id
        bucket, prefix = settings.layout.table_log
        self._log = NumberedLog(
            store,
            bucket,
            prefix,
            "json",
            read=self._read,
            encode=encode,
            id_of=attrgetter("entry_id"),
            most_races=settings.limits.races,
        )

    def load(self) -> TableLogState:
        """Read the newest checkpoint and every entry after it.

        Raises:
            IntegrityError: an entry is missing, damaged or of another log.
        """
        state = TableLogState()
        listed = self._listed_from_hint()
        if listed.checkpoint:
            number = listed.checkpoint
            bucket, _ = self._settings.layout.table_log
            key = self._log.key(number, CHECKPOINT)
            where = f"s3://{bucket}/{key}"
            checkpoint = decode_checkpoint(self._get(bucket, key), where, number)
            self._require_ours(checkpoint.log_id, where)
            state.start(checkpoint)
        self._log.fold_in(state, listed)
        state.published = listed.newest(_PUBLISHED) or state.published
        return state

    def refresh(self, state: TableLogState) -> None:
        """Apply the entries that were written since ``state`` was loaded.

        Raises:
            IntegrityError: as :meth:`load` does.
        """
        self._log.refresh(state)

    def every_entry(self, state: TableLogState) -> list[TableEntry]:
        """Return all entries up to the state's last, including those that a checkpoint covers.

        Raises:
            IntegrityError: an entry is missing or damaged.
        """
        summed_up = range(1, state.checkpoint + 1)
        with ThreadPoolExecutor(_READERS) as pool:
            return [*pool.map(self._log.read, summed_up), *state.between(state.checkpoint)]

    def _read(self, bucket: str, key: str, number: int) -> TableEntry:
        where = f"s3://{bucket}/{key}"
        entry = decode_entry(self._get(bucket, key), where, number)
        self._require_ours(entry.log_id, where)
        return entry

    def append(self, state: TableLogState, draft: Draft) -> bool:
        """Write a draft as the next entry; return False if another writer was first.

        In that case ``state`` has been refreshed, and the caller must rebuild the draft.

        Raises:
            IntegrityError: the log is damaged.
        """
        entry = TableEntry(
            number=0,
            entry_id=uuid.uuid4().hex,
            log_id=self._log_id,
            table=draft.table,
            uuid=draft.uuid,
            run_id=draft.run_id,
            created_at=draft.now,
            outputs=list(draft.outputs),
            through=dict(draft.through),
            upsert=draft.upsert,
            acceptance=draft.acceptance,
        )
        first = state.last

        def may_append() -> None:
            if state.last > first:
                raise CommitConflict("the table log has gone on")

        try:
            self._log.append(state, lambda number: replace(entry, number=number), may_append)
        except CommitConflict:
            return False
        return True

    def mark_published(self, state: TableLogState, number: int, at: str) -> None:
        """Record that the table was seen with this entry; write a checkpoint when one is due.

        Args:
            state: of the log, loaded before the table was.
            number: of the entry.
            at: version of the table, for messages.
        """
        if number > state.published:
            mark = PublishedMark(number=number, entry_id=state.entry_ids[number], at=at)
            self._log.attach(number, _PUBLISHED, encode(mark))
            state.published = number
        if number == state.last >= state.checkpoint + _ENTRIES_A_CHECKPOINT:
            # Concurrent writers of this checkpoint write the same content.
            self._log.attach(number, CHECKPOINT, encode(state.sum_up(self._log_id)))
            bucket, key = self._settings.layout.table_hint
            self._store.put(bucket, key, encode(TableHint(checkpoint=number)), content_type=_JSON)
            state.checkpoint = number

    def _listed_from_hint(self) -> Listed:
        """List the log from its last known checkpoint, since it grows by two objects an entry."""
        bucket, key = self._settings.layout.table_hint
        try:
            hint = _decode_hint(self._store.get(bucket, key)).checkpoint
        except (ObjectMissing, msgspec.MsgspecError, ValueError):
            return self._log.listed()
        listed = self._log.listed(hint - 1)
        is_right = hint in listed.others.get(CHECKPOINT, ())
        return listed if is_right else self._log.listed()

    def _get(self, bucket: str, key: str) -> bytes:
        try:
            return self._store.get(bucket, key)
        except ObjectMissing:
            raise IntegrityError(f"s3://{bucket}/{key}: it was deleted just now") from None

    def _require_ours(self, log_id: str, where: str) -> None:
        if log_id != self._log_id:
            raise IntegrityError(
                f"{where} names log {log_id}, and this is log {self._log_id}: it was put there by"
                f" hand; {WAY_OUT}"
            )


def table_log_there(store: ObjectStore, settings: Settings) -> bool:
    """Return True when the table log has a first entry. Costs one request."""
    return store.head(*settings.layout.table_entry(1)) is not None
