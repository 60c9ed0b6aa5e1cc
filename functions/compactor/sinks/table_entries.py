"""The entries of the table log, and their fold into one state (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from compactor.decoding import decoded, decoder
from compactor.errors import IntegrityError
from compactor.log.identity import WAY_OUT
from compactor.sinks.upserts import UpsertKey

_T = TypeVar("_T")
TABLE_VERSION = 1


class NamedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output that a table log entry adds to the table.

    Attributes:
        path: of its partition.
        sequence, commit_id: of its commit in that partition's log.
        size: stored bytes.
        crc32: of the stored bytes; None if S3 copied them.
        rows: None if they were not counted.
    """

    path: str
    sequence: int
    commit_id: str
    bucket: str
    key: str
    size: int
    crc32: int | None
    rows: int | None


class SetAside(msgspec.Struct, frozen=True, kw_only=True):
    """An output that did not fit the table: no entry names it, and its sources are kept.

    Attributes:
        sequence, commit_id: of its commit.
        bucket, key: of the output.
        reason: why it does not fit, for messages.
        tried: digest of the table's columns and partitioning and the settings that decided. The
            output is tried again when the digest changes.
    """

    sequence: int
    commit_id: str
    bucket: str
    key: str
    reason: str
    tried: str

    @property
    def line(self) -> str:
        """Which output is set aside and why, in one line."""
        return f"s3://{self.bucket}/{self.key} is not in the table: {self.reason}"


class Reached(msgspec.Struct, frozen=True):
    """How far the table log has read a partition's commit log.

    Attributes:
        sequence, commit_id: of the last entry that was read.
        aside: outputs up to there that do not fit the table.
    """

    sequence: int
    commit_id: str
    aside: tuple[SetAside, ...] = ()


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's acceptance of a table that others rolled back or re-created.

    It describes the table as of this entry, and overrides what earlier entries say.

    Attributes:
        table_version: of the table that was looked at, for messages.
        absent: outputs that entries, including this one, name and that the table does not have.
        doubtful: outputs whose rows may be in the table: its history no longer shows it.
        releases_sources: clean-up may delete the sources of both.
        outputs: number of outputs that entries name and that are in neither list.
    """

    table_version: str
    absent: list[NamedOutput]
    doubtful: list[NamedOutput]
    releases_sources: bool
    outputs: int

    @property
    def missing(self) -> dict[tuple[str, str], NamedOutput]:
        """The absent and the doubtful outputs, by bucket and key."""
        return {(one.bucket, one.key): one for one in (*self.absent, *self.doubtful)}


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Entry ``number`` of the table log.

    Attributes:
        entry_id: lets a writer recognise its own entry if the response was lost.
        log_id: identity of the state.
        table: as the run's input names it; the same in the whole log.
        uuid: of that table; changes only with an acceptance.
        upsert: the table's key; the same in the whole log. None if outputs are data files.
        created_at: UNIX seconds.
        through: by path, for the partitions whose outputs the entry names.
        acceptance: set if an operator accepted the table with this entry. Its outputs were named
            by earlier entries, and are added again.
    """

    version: int = TABLE_VERSION
    number: int
    entry_id: str
    log_id: str
    table: str
    uuid: str
    run_id: str
    created_at: float
    outputs: list[NamedOutput]
    through: dict[str, Reached]
    upsert: UpsertKey | None = None
    acceptance: Acceptance | None = None

    @property
    def rows(self) -> int:
        """Rows of all outputs, as far as they were counted."""
        return sum(one.rows or 0 for one in self.outputs)


class TableCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Sums up all entries through ``number``, all of which are in the table.

    Attributes:
        entry_id: of the last of these entries.
        accepted: number of the last acceptance, or 0.
        missing: outputs that the table lacks or may lack since that acceptance.
        releases_sources: clean-up may delete the sources of these outputs.
    """

    version: int = TABLE_VERSION
    number: int
    entry_id: str
    log_id: str
    table: str
    uuid: str
    outputs: int
    through: dict[str, Reached]
    upsert: UpsertKey | None = None
    accepted: int = 0
    missing: list[NamedOutput] = []
    releases_sources: bool = False


class PublishedMark(msgspec.Struct, frozen=True, kw_only=True):
    """Records that the table was seen to contain entry ``number``.

    Attributes:
        at: version of the table then, for messages.
    """

    version: int = TABLE_VERSION
    number: int
    entry_id: str
    at: str


_decode_entry = decoder(TableEntry)
_decode_checkpoint = decoder(TableCheckpoint)
encode = msgspec.json.encode


def decode_entry(body: bytes, where: str, number: int) -> TableEntry:
    """Decode an entry of the table log.

    Raises:
        IntegrityError: it is damaged, of a later version, or has another number.
    """
    entry = _decode(_decode_entry, body, where)
    if entry.number != number:
        raise IntegrityError(f"{where} says that it is entry {entry.number}; {WAY_OUT}")
    return entry


def decode_checkpoint(body: bytes, where: str, number: int) -> TableCheckpoint:
    """Decode a checkpoint of the table log; raises like :func:`decode_entry`."""
    checkpoint = _decode(_decode_checkpoint, body, where)
    if checkpoint.number != number:
        raise IntegrityError(f"{where} says that it sums up {checkpoint.number}; {WAY_OUT}")
    return checkpoint


def _decode(decode: Callable[[bytes], _T], body: bytes, where: str) -> _T:
    return decoded(decode, where, body, TABLE_VERSION, way_out=WAY_OUT)


@dataclass(slots=True)
class TableLogState:
    """The state that the table log's checkpoint and entries add up to.

    Attributes:
        last: number of the newest entry, or 0.
        checkpoint: number of the last entry that the newest checkpoint covers.
        published: the highest entry number that the table was seen with.
        table, uuid: the table that the log is about; empty before the first entry.
        upsert: the table's key; None if outputs are data files.
        entry_ids: ids of the entries after the checkpoint, by number.
        through: by path, how far the partition's commit log has been read.
        entries: the entries after the checkpoint, by number.
        given: outputs that entries after the checkpoint name, by bucket and key.
        outputs: number of outputs that entries name and that the table should have.
        accepted: number of the last acceptance, or 0.
        missing: outputs that the table lacks or may lack since that acceptance, by bucket and key.
        releases_sources: clean-up may delete the sources of the missing outputs.
    """

    last: int = 0
    checkpoint: int = 0
    published: int = 0
    table: str = ""
    uuid: str = ""
    upsert: UpsertKey | None = None
    entry_ids: dict[int, str] = field(default_factory=dict)
    through: dict[str, Reached] = field(default_factory=dict)
    entries: dict[int, TableEntry] = field(default_factory=dict)
    given: dict[tuple[str, str], NamedOutput] = field(default_factory=dict)
    outputs: int = 0
    accepted: int = 0
    missing: dict[tuple[str, str], NamedOutput] = field(default_factory=dict)
    releases_sources: bool = False

    def start(self, checkpoint: TableCheckpoint) -> None:
        """Start from a checkpoint."""
        self.last = self.checkpoint = self.published = checkpoint.number
        self.table, self.uuid = checkpoint.table, checkpoint.uuid
        self.upsert = checkpoint.upsert
        self.entry_ids[checkpoint.number] = checkpoint.entry_id
        self.through = dict(checkpoint.through)
        self.outputs = checkpoint.outputs
        self.accepted, self.releases_sources = checkpoint.accepted, checkpoint.releases_sources
        self.missing = {(one.bucket, one.key): one for one in checkpoint.missing}

    def add(self, entry: TableEntry) -> None:
        """Apply the next entry.

        Raises:
            IntegrityError: it is about another table than the entries before it.
        """
        uuid = self.uuid if entry.acceptance is None else entry.uuid
        where = f"entry {entry.number} of the table log"
        if self.last and (entry.table, entry.uuid) != (self.table, uuid):
            raise IntegrityError(
                f"{where} is about the table {entry.table} ({entry.uuid}), those before it about"
                f" {self.table} ({self.uuid}): it was put there by hand; {WAY_OUT}"
            )
        if self.last and entry.upsert != self.upsert:
            raise IntegrityError(
                f"{where} has another upsert key than those before it: it was put there by hand;"
                f" {WAY_OUT}"
            )
        self.table, self.uuid, self.upsert = entry.table, entry.uuid, entry.upsert
        self.last = entry.number
        self.entry_ids[entry.number] = entry.entry_id
        self.entries[entry.number] = entry
        self.given |= {(one.bucket, one.key): one for one in entry.outputs}
        self.through.update(entry.through)
        if entry.acceptance is not None:
            self._accept(entry.number, entry.acceptance)
            return
        self.outputs += len(entry.outputs)

    def _accept(self, number: int, found: Acceptance) -> None:
        self.accepted, self.missing = number, found.missing
        self.releases_sources = found.releases_sources
        self.outputs = found.outputs

    def reached(self, path: str) -> int:
        """Return the sequence up to which a partition's log was read; 0 if none was."""
        found = self.through.get(path)
        return found.sequence if found else 0

    def aside(self, path: str) -> tuple[SetAside, ...]:
        """Return the outputs of a partition that were set aside because they do not fit."""
        found = self.through.get(path)
        return found.aside if found else ()

    @property
    def aside_lines(self) -> dict[tuple[str, int], str]:
        """A line for each output that is set aside, by partition and sequence."""
        return {
            (path, one.sequence): one.line
            for path, reached in self.through.items()
            for one in reached.aside
        }

    def names(self, path: str, sequence: int) -> bool:
        """Return True when an entry names the output of this commit."""
        passed_over = any(one.sequence == sequence for one in self.aside(path))
        return sequence <= self.reached(path) and not passed_over

    def is_in(self, path: str, sequence: int, last: int) -> bool:
        """Return True when a table whose last entry is ``last`` has this commit's output."""
        if not self.names(path, sequence):
            return False
        return not any(
            one.path == path and one.sequence == sequence
            for number, entry in self.entries.items()
            if number > last
            for one in entry.outputs
        )

    def between(self, last: int) -> list[TableEntry]:
        """Return the entries after ``last``, which are still to be added to the table."""
        return [self.entries[number] for number in range(last + 1, self.last + 1)]

    def sum_up(self, log_id: str) -> TableCheckpoint:
        """Return a checkpoint of all entries."""
        return TableCheckpoint(
            number=self.last,
            entry_id=self.entry_ids[self.last],
            log_id=log_id,
            table=self.table,
            uuid=self.uuid,
            outputs=self.outputs,
            through=self.through,
            upsert=self.upsert,
            accepted=self.accepted,
            missing=list(self.missing.values()),
            releases_sources=self.releases_sources,
        )
