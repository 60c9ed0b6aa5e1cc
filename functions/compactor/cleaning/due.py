"""Decides what happens to each entry of a partition's log in one clean-up."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from compactor.catalogs.opening import open_catalog
from compactor.catalogs.readers import open_readers
from compactor.cleaning import decide as cleanup
from compactor.cleaning import output_proof as proof
from compactor.cleaning.decide import Entry, Survey
from compactor.destination import Destination
from compactor.errors import IntegrityError, object_gone
from compactor.log.entries import Commit, Output
from compactor.log.identity import read_identity, require_identity
from compactor.log.log_reader import (
    StoredLog,
    one_log,
    read_entry,
)
from compactor.model import Partition, SkipReason, SourceObject
from compactor.planning.surroundings import Surroundings
from compactor.ports import Clock, Deadline, ObjectHead, ObjectStore
from compactor.readers.clean_up_gate import ReaderGate
from compactor.settings.settings import Settings
from compactor.sinks.table_proof import OpenCatalog, TableProof, look_at_table

CLOUDTRAIL_WARNING = (
    "sources of CloudTrail: aws cloudtrail validate-logs needs the originals, so validate them"
    " before they are deleted"
)
DEAD_LETTER_WARNING = "sources with dead-letter records stay: these are in no output"


@dataclass(slots=True)
class CleanUpFacts:
    """What one run's clean-up has found out once, for all its partitions.

    Attributes:
        has_no_table: no output of the destination had been added to a table when it looked. If a
            table was begun since, a missing output makes it look again.
        contents: what it has read of the table's metadata, by version, as
            :func:`compactor.sinks.table_proof.look_at_table` keeps it.
        has_no_readers: no query engine's table shows the destination. A table created since shows
            nothing that clean-up may delete.
        levels: which levels of the source's bucket a table or registry owns, as
            :class:`compactor.planning.surroundings.Surroundings` keeps it.
    """

    has_no_table: bool = False
    contents: dict[str, Any] = field(default_factory=dict)
    has_no_readers: bool = False
    levels: dict[str, Future[SkipReason | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CleanUpRun:
    """Everything one partition's clean-up needs.

    Attributes:
        path: path of the partition.
        only: if given, the sequence numbers of the only entries that are touched.
        reserve_seconds: no further commit is begun with less than this left, or less than the
            longest one took; every call begins at least one.
        on_entry: called after each processed entry.
        open_catalog: opens the destination's table, if there is one.
        facts: what earlier partitions of this process and run have shown.
        readers: queries the catalog for the table that query engines read, if there is one.
    """

    path: str
    settings: Settings
    store: ObjectStore
    clock: Clock
    deadline: Deadline
    run_id: str
    only: Container[int] | None = None
    reserve_seconds: float = 30.0
    on_entry: Callable[[], None] = lambda: None
    open_catalog: OpenCatalog = open_catalog
    facts: CleanUpFacts = field(default_factory=CleanUpFacts)
    readers: ReaderGate = field(default_factory=partial(ReaderGate, open_readers))

    @property
    def partition(self) -> Partition:
        """The partition to clean up."""
        return self.settings.partition_at(self.path)

    @property
    def destination(self) -> Destination:
        """Location of the partition's outputs."""
        bucket, prefix = self.settings.outputs_of(self.partition)
        return Destination(bucket, prefix)

    def list_log(self) -> StoredLog:
        """List the partition's commit log."""
        return one_log(self.settings.state, self.path, self.store)

    def survey(self, log: StoredLog) -> Survey:
        """Read the log, once its completeness and the state's identity are certain.

        Raises:
            IntegrityError: they are not.
        """
        survey = cleanup.survey(log, self.store)
        if survey.log_id:
            identity = read_identity(self.settings, self.store)
            require_identity(self.settings, survey.log_id, identity)
        return survey


@dataclass(frozen=True, slots=True)
class Examined:
    """An entry for which retention has passed.

    Attributes:
        sources: what may be deleted; empty for an entry that names no sources, or is void.
        kept: number of its sources that stay because they have dead-letter records.
        fault: why its sources must stay, in one line; empty if they need not.
        elsewhere: all its sources lie in another source, whose own clean-up may delete them.
        waits: why query engines may still read its sources; empty if they cannot.
    """

    commit: Commit
    sources: tuple[SourceObject, ...] = ()
    kept: int = 0
    fault: str = ""
    elsewhere: bool = False
    waits: str = ""

    @property
    def bytes(self) -> int:
        """Total size of the sources that may be deleted, in bytes."""
        return sum(source.size for source in self.sources)


def candidates(run: CleanUpRun, entries: Sequence[Entry], after: int = 0) -> Iterator[Entry]:
    """Yield the entries after ``after`` for which retention may have passed, oldest first."""
    for entry in entries:
        is_chosen = entry.sequence > after and (run.only is None or entry.sequence in run.only)
        if is_chosen and cleanup.may_be_due(entry, run.settings, run.clock.now()):
            yield entry


def with_table(
    run: CleanUpRun, entries: Iterable[Entry]
) -> Iterator[tuple[Entry, TableProof | None]]:
    """Yield each entry with the table as it was before the first; not read without entries.

    Raises:
        IntegrityError: the table was changed in an unexpected way: nothing may be deleted.
    """
    table: TableProof | None = None
    for number, entry in enumerate(entries):
        if not number:
            table = _table_of(run)
        yield entry, table


def _table_of(run: CleanUpRun) -> TableProof | None:
    """Return the destination's table; its absence is looked up once per process and run."""
    if run.facts.has_no_table and run.settings.table is None:
        return None
    table = _looked_at(run)
    run.facts.has_no_table = table is None
    return table


def _looked_at(run: CleanUpRun) -> TableProof | None:
    return look_at_table(run.settings, run.store, run.open_catalog, run.facts.contents)


def examine(
    run: CleanUpRun, log: StoredLog, entry: Entry, table: TableProof | None = None
) -> Examined | None:
    """Decide about one entry; return None if its sources must still be kept.

    They are kept while retention has not passed by the store's clock, or the output is not in the
    destination's table yet.

    Raises:
        IntegrityError: the entry changed since the log was read.
    """
    commit = read_entry(run.store, log.state.bucket, log.key_of(entry.sequence), entry.sequence)
    if commit.commit_id != entry.commit_id:
        raise _by_hand(log, entry)
    sources = cleanup.own_sources(commit, run.settings.source) if entry.valid else ()
    if entry.valid and commit.sources and not sources:
        return Examined(commit, elsewhere=True)
    look = _Look(run, log, table)
    if sources and look.waits_for(commit):
        return None
    examined = Examined(commit, sources)
    try:
        if _is_read(run, sources):
            return Examined(commit, waits=run.readers.reason())
    except IntegrityError as error:
        return _unsafe(run, examined, error)
    return _examine_output(look, entry, examined)


def _is_read(run: CleanUpRun, sources: Sequence[SourceObject]) -> bool:
    """Return True if query engines may read one of the sources through the table in the catalog.

    Raises:
        IntegrityError: the catalog shows something that no refresh left.
    """
    if run.facts.has_no_readers or not sources:
        return False
    is_read = run.readers.holds(sources, run.settings, run.partition, run.store, run.clock)
    run.facts.has_no_readers = run.readers.has_none
    return is_read


def _unsafe(run: CleanUpRun, examined: Examined, error: IntegrityError) -> Examined:
    where = f"{run.path or '(root)'} commit {examined.commit.sequence}"
    return Examined(examined.commit, fault=f"{where}: {error}; its sources stay")


class _Look(NamedTuple):
    run: CleanUpRun
    log: StoredLog
    table: TableProof | None

    def waits_for(self, commit: Commit) -> bool:
        """Return True if a commit's output is not yet in the table, or is missing there."""
        table = self.table
        if table is None or commit.output is None:
            return False
        return not (table.has(self.run.path, commit) or table.releases(commit))


def _examine_output(look: _Look, entry: Entry, examined: Examined) -> Examined | None:
    run, log = look.run, look.log
    # Empty sources have no output, and none of their content can be lost.
    output = examined.commit.output if examined.sources else None
    head = None if output is None else run.store.head(output.bucket, output.key)
    # Without an output, the entry's HEAD has the store's time.
    clock = head or _head_of(run, log, entry)
    at = cleanup.earlier_clock(clock, run.clock.now())
    if not cleanup.has_passed(entry.readable_since, run.settings, at):
        return None
    if examined.sources:
        try:
            _require_no_owner(run, examined.sources)
            if output is not None:
                _prove(look, examined.commit, output, head)
            examined = _without_dead_letters(run, examined)
        except IntegrityError as error:
            return _unsafe(run, examined, error)
    return examined


def _without_dead_letters(run: CleanUpRun, examined: Examined) -> Examined:
    """Return an entry without the sources that have dead-letter records: these are no rows.

    Raises:
        IntegrityError: the records are missing, or not what the commit says.
    """
    dead_letters = examined.commit.dead_letters
    if dead_letters is None:
        return examined
    stay = proof.dead_letter_sources(dead_letters, run.store)
    sources = tuple(
        source for source in examined.sources if f"s3://{source.bucket}/{source.key}" not in stay
    )
    return replace(examined, sources=sources, kept=len(examined.sources) - len(sources))


def _require_no_owner(run: CleanUpRun, sources: Sequence[SourceObject]) -> None:
    """Check that the prefix did not become part of a table or registry since it was compacted.

    Raises:
        IntegrityError: the sources may be files of the table or registry.
    """
    bucket, prefix = run.partition.bucket, run.partition.prefix
    surroundings = Surroundings(run.store, bucket, run.facts.levels)
    # Python orders text like UTF-8 for all keys, which contain no surrogates.
    owned = surroundings.owned(prefix, sorted(source.key for source in sources))
    if owned is not None:
        raise IntegrityError(
            f"s3://{bucket}/{owned} lies in a table or registry that was made since;"
            " compactor maintain compacts a table"
        )


def _prove(look: _Look, commit: Commit, output: Output, head: ObjectHead | None) -> None:
    run, table = look.run, look.table
    if head is None and table is None:
        # A table may have been begun since, and its maintenance may have deleted the output.
        table = _looked_at(run)
    is_in = table is not None and table.has(run.path, commit)
    if table is not None and is_in:
        table.require_rows(output, stands=head is not None)
    if head is not None:
        return proof.prove(output, head)
    if is_in:
        return output.require_accounted()
    if table is None or not table.releases(commit):
        raise object_gone(output.uri)
    return None


def _head_of(run: CleanUpRun, log: StoredLog, entry: Entry) -> ObjectHead:
    head = run.store.head(log.state.bucket, log.key_of(entry.sequence))
    if head is None:
        raise _by_hand(log, entry)
    return head


def _by_hand(log: StoredLog, entry: Entry) -> IntegrityError:
    where = f"s3://{log.state.bucket}/{log.key_of(entry.sequence)}"
    return IntegrityError(f"{where} is gone, or not what it was: the log was changed by hand")
