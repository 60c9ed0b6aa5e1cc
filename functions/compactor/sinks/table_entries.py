"""The entries of the table log, and what they say together: a pure fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """An output that goes into the table.

    Attributes:
        path: of its partition.
        sequence, commit_id: of its commit there.
        size: stored bytes.
        crc32: of the stored bytes; None where S3 copied them.
        rows: None where they were not counted.
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
    """An output that did not fit the table: it is in no entry, and its sources stay.

    Attributes:
        sequence, commit_id: of its commit.
        bucket, key: of the output.
        reason: why it does not fit, for a person.
        tried: digest of the table's columns, its partitioning and the settings that decided; with
            another one the output is tried again.
    """

    sequence: int
    commit_id: str
    bucket: str
    key: str
    reason: str
    tried: str

    @property
    def line(self) -> str:
        """Which output, and why, for a person."""
        return f"s3://{self.bucket}/{self.key} is not in the table: {self.reason}"


class Reached(msgspec.Struct, frozen=True):
    """How far a partition's commit log has been gone through: to this entry of it.

    Attributes:
        sequence, commit_id: of that entry.
        aside: outputs up to there that no entry of the table log names.
    """

    sequence: int
    commit_id: str
    aside: tuple[SetAside, ...] = ()


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator took the table for, after others had rolled it back or made it again.

    It describes the table as it is with this entry, whatever the entries before it say.

    Attributes:
        table_version: of the table that was looked at, for a person.
        absent: outputs that entries name, this one included, and that the table does not have.
        doubtful: outputs of which the table's history no longer shows whether it has their rows.
        releases_sources: clean-up may delete the sources of both.
        outputs: how many others entries name.
    """

    table_version: str
    absent: list[NamedOutput]
    doubtful: list[NamedOutput]
    releases_sources: bool
    outputs: int

    @property
    def missing(self) -> dict[tuple[str, str], NamedOutput]:
        """The absent and the doubtful ones, by bucket and key."""
        return {(one.bucket, one.key): one for one in (*self.absent, *self.doubtful)}


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Entry ``number`` of the table log.

    Attributes:
        entry_id: by which a writer recognises its own entry after a lost answer.
        log_id: identity of the state.
        table: the table as the run's input names it; one for the whole log.
        uuid: of that table; the same until an acceptance.
        upsert: what makes records one row; one for the whole log. None where they are data files.
        created_at: UNIX seconds.
        through: by path, for the partitions with outputs in it.
        acceptance: of an entry by which an operator accepted the table; else None. Its outputs
            were named before, and are added again.
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
        """Rows of all its outputs, as far as they were counted."""
        return sum(one.rows or 0 for one in self.outputs)


class TableCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of all entries through ``number``, every one of them in the table.

    Attributes:
        entry_id: of the last of them.
        accepted: number of the last acceptance; 0 where there is none.
        missing: outputs that the table does not have, or perhaps not, since that acceptance.
        releases_sources: clean-up may delete their sources.
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
    """The table was seen with entry ``number`` in it.

    Attributes:
        at: version of the table then, for a person.
    """

    version: int = TABLE_VERSION
    number: int
    entry_id: str
    at: str


_decode_entry = decoder(TableEntry)
_decode_checkpoint = decoder(TableCheckpoint)
encode = msgspec.json.encode


def decode_entry(body: bytes, where: str, number: int) -> TableEntry:
    """An entry of the table log.

    Raises:
        IntegrityError: it is damaged, of a later version, or has another number.
    """
    entry = _decode(_decode_entry, body, where)
    if entry.number != number:
        raise IntegrityError(f"{where} says that it is entry {entry.number}; {WAY_OUT}")
    return entry


def decode_checkpoint(body: bytes, where: str, number: int) -> TableCheckpoint:
    """A checkpoint of the table log; raises as :func:`decode_entry` does."""
    checkpoint = _decode(_decode_checkpoint, body, where)
    if checkpoint.number != number:
        raise IntegrityError(f"{where} says that it sums up {checkpoint.number}; {WAY_OUT}")
    return checkpoint


def _decode(decode: Callable[[bytes], _T], body: bytes, where: str) -> _T:
    return decoded(decode, where, body, TABLE_VERSION, way_out=WAY_OUT)


@dataclass(slots=True)
class TableLogState:
    """What the table log says.

    Attributes:
        last: number of its newest entry; 0 where there is none.
        checkpoint: what the newest checkpoint covers.
        published: the highest number that the table was seen with.
        table, uuid: the one table it is about; empty before the first entry.
        upsert: what makes records one row of it; None where they are data files.
        entry_ids: of the entries after the checkpoint.
        through: by path, how far the partition's commit log has been gone through.
        entries: those after the checkpoint, by number.
        given: what entries after the checkpoint name, by bucket and key.
        outputs: how many entries name and the table is to have.
        accepted: number of the last acceptance; 0 where there is none.
        missing: by bucket and key, outputs that the table does not have, or perhaps not, since
            that acceptance.
        releases_sources: clean-up may delete their sources.
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
        """Begin with what a checkpoint sums up."""
        self.last = self.checkpoint = self.published = checkpoint.number
        self.table, self.uuid = checkpoint.table, checkpoint.uuid
        self.upsert = checkpoint.upsert
        self.entry_ids[checkpoint.number] = checkpoint.entry_id
        self.through = dict(checkpoint.through)
        self.outputs = checkpoint.outputs
        self.accepted, self.releases_sources = checkpoint.accepted, checkpoint.releases_sources
        self.missing = {(one.bucket, one.key): one for one in checkpoint.missing}

    def add(self, entry: TableEntry, where: str) -> None:
        """Take the next entry.

        Raises:
            IntegrityError: it is about another table than those before it.
        """
        uuid = self.uuid if entry.acceptance is None else entry.uuid
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
        """Sequence up to which a partition's outputs are named; 0 where none is."""
        found = self.through.get(path)
        return found.sequence if found else 0

    def aside(self, path: str) -> tuple[SetAside, ...]:
        """Outputs of a partition that were passed over because they do not fit the table."""
        found = self.through.get(path)
        return found.aside if found else ()

    @property
    def aside_lines(self) -> dict[tuple[str, int], str]:
        """By partition and commit: a line for each output that is set aside."""
        return {
            (path, one.sequence): one.line
            for path, reached in self.through.items()
            for one in reached.aside
        }

    def names(self, path: str, sequence: int) -> bool:
        """True when an entry names the output of this commit."""
        passed_over = any(one.sequence == sequence for one in self.aside(path))
        return sequence <= self.reached(path) and not passed_over

    def is_in(self, path: str, sequence: int, last: int) -> bool:
        """True when a table that has everything up to entry ``last`` has this output."""
        if not self.names(path, sequence):
            return False
        return not any(
            one.path == path and one.sequence == sequence
            for number, entry in self.entries.items()
            if number > last
            for one in entry.outputs
        )

    def between(self, last: int) -> list[TableEntry]:
        """The entries that a table which has everything up to ``last`` is still to be given."""
        return [self.entries[number] for number in range(last + 1, self.last + 1)]

    def sum_up(self, log_id: str) -> TableCheckpoint:
        """The checkpoint of all entries."""
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


def missing_numbers(entries: Iterable[int], known: Iterable[int], after: int) -> list[int]:
    """Numbers after ``after`` that have no entry, up to the last that is known."""
    there = set(entries)
    last = max((*there, *known), default=0)
    return [number for number in range(after + 1, last + 1) if number not in there]
