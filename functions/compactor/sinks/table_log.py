"""The table log on S3: ``table/<n>.json``, each entry written with create-if-absent."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from compactor import layout
from compactor.decoding import decoder
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
from compactor.log.identity import WAY_OUT
from compactor.log.witness import Witness, leave_witness, require_witness
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
    missing_numbers,
)
from compactor.sinks.upserts import UpsertKey

_NAME = re.compile(r"(\d{20})\.(?:(witness)\.|(published)\.|(checkpoint)\.)?json")
_JSON = "application/json"
# An entry has about 250 bytes an output; one checkpoint saves this many small reads.
_ENTRIES_A_CHECKPOINT = 32
_READERS = 16


class TableHint(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoint to start reading from. If missing or wrong, the whole log is listed."""

    version: int = 1
    checkpoint: int


_decode_hint = decoder(TableHint)


@dataclass(slots=True)
class _Listed:
    entries: set[int] = field(default_factory=set)
    witnesses: set[int] = field(default_factory=set)
    published: set[int] = field(default_factory=set)
    checkpoints: set[int] = field(default_factory=set)


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

    def load(self) -> TableLogState:
        """Read the newest checkpoint and every entry after it.

        Raises:
            IntegrityError: an entry is missing, damaged or of another log.
        """
        state = TableLogState()
        listed = self._list_from_hint()
        if listed.checkpoints:
            number = max(listed.checkpoints)
            bucket, key = layout.table_checkpoint_key(self._settings, number)
            where = f"s3://{bucket}/{key}"
            checkpoint = decode_checkpoint(self._get(bucket, key), where, number)
            self._require_ours(checkpoint.log_id, where)
            state.start(checkpoint)
        self._take(state, listed)
        state.published = max(listed.published, default=state.published)
        return state

    def refresh(self, state: TableLogState) -> None:
        """Apply the entries that were written since ``state`` was loaded.

        Raises:
            IntegrityError: as :meth:`load` does.
        """
        self._take(state, self._list(state.last))

    def every_entry(self, state: TableLogState) -> list[TableEntry]:
        """Return all entries up to the state's last, including those that a checkpoint covers.

        Raises:
            IntegrityError: an entry is missing or damaged.
        """
        summed_up = range(1, state.checkpoint + 1)
        with ThreadPoolExecutor(_READERS) as pool:
            return [*pool.map(self._read, summed_up), *state.between(state.checkpoint)]

    def _read(self, number: int) -> TableEntry:
        bucket, key = layout.table_entry_key(self._settings, number)
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
            number=state.last + 1,
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
        bucket, key = layout.table_entry_key(self._settings, entry.number)
        try:
            self._store.create(bucket, key, encode(entry), content_type=_JSON)
        except AlreadyExists:
            before = state.last
            self.refresh(state)
            # A retried PUT may find the entry that its own first attempt wrote.
            return state.last > before and state.entry_ids.get(entry.number) == entry.entry_id
        state.add(entry, f"s3://{bucket}/{key}")
        return True

    def leave_witnesses(self, state: TableLogState, after: int) -> None:
        """Write a witness for each entry after ``after``, before the entries go into the table.

        Raises:
            IntegrityError: a witness names another entry for the same number.
        """
        for number in range(after + 1, state.last + 1):
            bucket, key = layout.table_witness_key(self._settings, number)
            witness = Witness(commit_id=state.entry_ids[number], log_id=self._log_id)
            leave_witness(self._store, bucket, key, witness)

    def mark_published(self, state: TableLogState, number: int, at: str) -> None:
        """Record that the table was seen with this entry; write a checkpoint when one is due.

        Args:
            state: of the log, loaded before the table was.
            number: of the entry.
            at: version of the table, for messages.
        """
        if number > state.published:
            bucket, key = layout.table_published_key(self._settings, number)
            mark = PublishedMark(number=number, entry_id=state.entry_ids[number], at=at)
            self._create(bucket, key, encode(mark))
            state.published = number
        if number == state.last >= state.checkpoint + _ENTRIES_A_CHECKPOINT:
            bucket, key = layout.table_checkpoint_key(self._settings, number)
            # Concurrent writers of this checkpoint write the same content.
            self._create(bucket, key, encode(state.sum_up(self._log_id)))
            bucket, key = layout.table_hint_key(self._settings)
            self._store.put(bucket, key, encode(TableHint(checkpoint=number)), content_type=_JSON)
            state.checkpoint = number

    def _create(self, bucket: str, key: str, body: bytes) -> None:
        try:
            self._store.create(bucket, key, body, content_type=_JSON)
        except AlreadyExists:
            return

    def _take(self, state: TableLogState, listed: _Listed) -> None:
        known = listed.witnesses | listed.published | listed.checkpoints
        missing = missing_numbers(listed.entries, known, state.last)
        if missing:
            bucket, key = layout.table_entry_key(self._settings, missing[0])
            raise IntegrityError(
                f"s3://{bucket}/{key} is missing, and later entries are there: it was deleted"
                f"; {WAY_OUT}"
            )
        for number in sorted(one for one in listed.entries if one > state.last):
            entry = self._read(number)
            bucket, key = layout.table_entry_key(self._settings, number)
            state.add(entry, f"s3://{bucket}/{key}")
            if number in listed.witnesses:
                place = layout.table_witness_key(self._settings, number)
                require_witness(self._store, *place, entry.entry_id)

    def _list_from_hint(self) -> _Listed:
        """List the log from its last known checkpoint, since it grows by three objects an entry."""
        bucket, key = layout.table_hint_key(self._settings)
        try:
            hint = _decode_hint(self._store.get(bucket, key)).checkpoint
        except (ObjectMissing, msgspec.MsgspecError, ValueError):
            return self._list(0)
        listed = self._list(hint - 1)
        return listed if hint in listed.checkpoints else self._list(0)

    def _list(self, after: int) -> _Listed:
        bucket, prefix = layout.table_log_prefix(self._settings)
        start = layout.table_entry_key(self._settings, after)[1] if after > 0 else ""
        listed = _Listed()
        kinds = (listed.witnesses, listed.published, listed.checkpoints)
        for page in self._store.list_objects(bucket, prefix, start_after=start):
            for one in page:
                match = _NAME.fullmatch(one.key, len(prefix))
                if match is None or int(match[1]) <= after:
                    continue
                found = [kind for kind, name in zip(kinds, match.groups()[1:], strict=True) if name]
                (found[0] if found else listed.entries).add(int(match[1]))
        return listed

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
    return store.head(*layout.table_entry_key(settings, 1)) is not None
