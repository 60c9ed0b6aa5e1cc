"""Adopt: rebuild a lost log from the existing outputs and their sources.

An output's name contains the id of its group: a hash over its sources and the options that affect
its bytes. So for each output the plan of its time is computed again, from the sources that had
arrived by then. If a group of that plan has the output's id, its sources are read and the output is
built again. If the bytes equal the output's, the content of its lost commit is proven, and is
written.

An output older than every remaining source holds none of them. It is added to the log without a
manifest: nothing in it can be compacted twice, and nothing can be restored or cleaned up. An output
that fits neither case stays as it is, and so does its partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

from compactor.cleaning import output_proof as proof
from compactor.destination import OutputName, output_name
from compactor.encoding.output_encoding import packing_class
from compactor.errors import (
    CommitConflict,
    IntegrityError,
    ObjectMissing,
    SourceChanged,
    TransientStoreError,
    UnreadableSource,
)
from compactor.log.completeness import outputs_among
from compactor.log.content_index import Contents
from compactor.log.entries import Commit, Output
from compactor.log.identity import WAY_OUT, restore_identity
from compactor.log.log import CommitLog
from compactor.log.log_reader import all_logs
from compactor.log.schemes import remember_scheme
from compactor.log.state import LogState
from compactor.model import CompactionPlan, Listing, ObjectGroup, Signature, SourceObject
from compactor.outputs.group import draft_of, store_group
from compactor.outputs.pending import PendingOutput
from compactor.outputs.publish import is_published, withdraw
from compactor.planning.partition_listing import Onward, take_listing
from compactor.planning.plan import Knowledge, plan
from compactor.ports import ObjectHead, ObjectStore
from compactor.runs.partition_run import PartitionRun
from compactor.settings.settings import Settings
from compactor.verification.rehearsal import Rehearsal

# Longest time between a run's plan and an output's upload; and how many plan times are tried.
_BEFORE_SECONDS = 900.0
_MOST_MOMENTS = 50


@dataclass(slots=True)
class Adoption:
    """What was, or would be, adopted in one partition.

    Attributes:
        outputs: number of outputs that no log entry named.
        proven: keys of those that were rebuilt with the same bytes.
        sources: number of sources in the proven outputs.
        older: keys of those that are older than every remaining source.
        left: a line for each of the others.
        error: why nothing could be done; empty otherwise.
    """

    path: str
    outputs: int = 0
    proven: list[str] = field(default_factory=list)
    sources: int = 0
    older: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    error: str = ""


def adopt(run: PartitionRun, *, dry_run: bool) -> Adoption:
    """Write the provable entries of one partition's log.

    Args:
        run: the partition, with the settings that its outputs were made with.
        dry_run: write nothing.

    Raises:
        TransientStoreError: the store did not answer.
        InvalidInput: read or write access to something is denied.
    """
    adoption = Adoption(run.partition.path)
    try:
        _Partition(run, adoption, dry_run=dry_run).adopt()
    except IntegrityError as error:
        adoption.error = str(error).removesuffix(f"; {WAY_OUT}")
    return adoption


class _Partition:
    def __init__(self, run: PartitionRun, adoption: Adoption, *, dry_run: bool) -> None:
        self._run = run
        self._log: CommitLog = run.log
        self._dry_run = dry_run
        self._adoption = adoption
        self._state: LogState = self._log.load(lost=True)
        self._signatures: dict[bytes, Signature] = {}
        # Decisions are used but not pinned: later runs pin their own.
        self._faults: dict[str, str] = {}
        self._open: dict[str, SourceObject] = {}

    def adopt(self) -> None:
        adoption = self._adoption
        self._void_disputed()
        unnamed = self._log.unnamed(self._state)
        adoption.outputs = len(unnamed)
        self._open = {one.key: one for one in unnamed}
        for output in sorted(unnamed, key=lambda one: (one.last_modified, one.key)):
            if output.key in self._open:
                self._replay(output)
        self._take_older()
        for key in sorted(self._open):
            why = self._faults.get(key, "no plan of the sources that are left has its group")
            adoption.left.append(f"s3://{self._run.destination.bucket}/{key}: {why}")
        if not self._dry_run:
            self._log.checkpoint(self._state)

    def _void_disputed(self) -> None:
        """Void unpublished entries that are not the first ones with their number."""
        state, run = self._state, self._run
        for sequence in sorted(state.unwitnessed):
            if self._log.is_disputed(state, sequence):
                commit = state.unpublished.get(sequence)
                output = None if commit is None else commit.output
                if commit is None or output is None or is_published(output, run.store):
                    # Readers already see this output, so the number belongs to it.
                    state.lost.add(sequence)
                else:
                    if not self._dry_run:
                        withdraw(commit, run.store)
                    self._write(commit.voided(run.run_id))
        # Forget the contents seen so far: voided entries no longer have a commit.
        state.foreign = Contents()
        if not self._dry_run:
            self._log.settle_numbers(state)

    def _replay(self, output: SourceObject) -> None:
        """Plan again as the run that made an output did, and prove groups with an output's id."""
        tried: set[str] = set()
        for moment in self._moments(output):
            more = True
            while more and output.key in self._open:
                more = False
                for group in self._plans(moment):
                    names = () if group.id in tried else self._named(group)
                    tried.add(group.id)
                    more |= any(self._prove(group, name.stem) for name in names)
            if output.key not in self._open:
                return

    def _moments(self, output: SourceObject) -> Iterator[float]:
        """Yield the times at which the plan may have been made.

        A plan leaves out sources that arrived or settled after it.
        """
        settle, at = self._run.settings.settle_seconds, output.last_modified
        yield at
        # The store has whole seconds, and other objects may have arrived in this one.
        yield at - 1.0
        there = self._sources(at)
        arrived = {one.last_modified for one in there}
        near = {one + settle for one in arrived if at - _BEFORE_SECONDS < one + settle < at}
        yield from sorted(near, reverse=True)[:_MOST_MOMENTS]

    def _plans(self, moment: float) -> Iterator[ObjectGroup]:
        run, state = self._run, self._state
        known = Knowledge(state.committed, state.quarantined, self._signatures)
        for window in self._windows(moment):
            decision: CompactionPlan = plan(window, run.settings, known, moment)
            yield from decision.groups

    def _windows(self, at: float) -> Iterator[Listing]:
        run = self._run
        lists = Onward(cast(ObjectStore, Rehearsal(run.store, at)))
        after, complete = "", False
        while not complete:
            limits = run.settings.limits
            window = take_listing(lists, run.partition, self._state.committed, after, limits=limits)
            yield window
            after, complete = window.last_key, window.complete

    def _sources(self, at: float) -> Iterator[SourceObject]:
        for window in self._windows(at):
            yield from window.objects

    def _named(self, group: ObjectGroup) -> list[OutputName]:
        """Return the names of open outputs that have a group's id."""
        names = (output_name(key) for key in self._open)
        return [name for name in names if name is not None and name.group_id == group.id]

    def _prove(self, group: ObjectGroup, stem: str) -> bool:
        """Build a group again; return True if the output with this stem has the same bytes."""
        run, destination = self._run, replace(self._run.destination, stem=stem)
        rehearsal = cast(ObjectStore, Rehearsal(run.store, float("inf")))
        try:
            pending = store_group(group, run.settings, rehearsal, destination)
            self._signatures.update(pending.misfits)
            draft = draft_of(pending, run.run_id, run.clock.now())
            if draft is None or draft.output is None or draft.output.key not in self._open:
                return False
            proof.prove(draft.output, self._head(draft.output.key))
        except (IntegrityError, SourceChanged, UnreadableSource) as error:
            for key in self._open:
                if group.id in key:
                    self._faults[key] = str(error)
            return False
        self._write(draft)
        self._adoption.proven.append(draft.output.key)
        self._adoption.sources += len(draft.rows)
        return True

    def _head(self, key: str) -> ObjectHead:
        bucket = self._run.destination.bucket
        head = self._run.store.head(bucket, key)
        if head is None:
            raise IntegrityError(f"s3://{bucket}/{key} is gone")
        return head

    def _write(self, draft: Commit) -> None:
        """Write the entry as published, because its output is already readable."""
        state = self._state
        if self._dry_run:
            state.add(replace(draft, sequence=state.last + 1, log_id=state.log_id))
        else:
            try:
                draft = self._log.append(state, draft)
            except CommitConflict as error:
                raise TransientStoreError(f"another run is at work: {error}") from error
            state.mark_published(draft)
        if draft.output is not None:
            self._open.pop(draft.output.key, None)

    def _take_older(self) -> None:
        """Adopt outputs older than each of the sources that no entry names."""
        oldest = min((one.last_modified for one in self._sources(float("inf"))), default=None)
        for key, output in sorted(self._open.items()):
            if oldest is not None and oldest <= output.last_modified:
                continue
            with suppress(ObjectMissing):
                self._write(_without_manifest(self._run, output, self._head(key)))
                self._adoption.older.append(key)


def _without_manifest(run: PartitionRun, output: SourceObject, head: ObjectHead) -> Commit:
    name = output_name(output.key)
    group_id = "" if name is None else name.group_id
    pending = PendingOutput(
        group=ObjectGroup(group_id, (SourceObject(run.partition.bucket, "", "", 0, 0.0),)),
        output=Output(
            bucket=output.bucket,
            key=output.key,
            upload_id="adopted",
            parts=(),
            size=head.size,
            crc32=head.crc32,
            plain_bytes=None,
            records=None,
            format=None,
            compression=packing_class(output.key).compression,
        ),
        rows=(),
    )
    return pending.draft(run.run_id, run.clock.now())


def find_outputs(settings: Settings, store: ObjectStore) -> dict[str, list[SourceObject]]:
    """Return every output in a destination, whatever its stem, by its partition's path.

    Raises:
        InvalidInput: as :func:`compactor.log.completeness.outputs_among`.
    """
    place = settings.destination

    def listed() -> Iterator[SourceObject]:
        return (one for page in store.list_objects(place.bucket, place.prefix) for one in page)

    found: dict[str, list[SourceObject]] = {}
    for one in outputs_among(listed, store):
        path = one.key[len(place.prefix) : one.key.rfind("/") + 1]
        found.setdefault(path, []).append(one)
    return found


def begin(settings: Settings, store: ObjectStore, found: Mapping[str, list[SourceObject]]) -> None:
    """Restore a state's marker and scheme if they were lost.

    Args:
        settings: the settings that its outputs were made with.
        store: the store that holds the state.
        found: its outputs, by path.

    Raises:
        InvalidInput: the outputs were made with other partitions.
        IntegrityError: the outputs name several logs.
    """
    outputs = [one for ones in found.values() for one in ones]
    restore_identity(settings, store, outputs)
    logs = [log.path for log in all_logs(settings.state, store) if log.entries]
    remember_scheme(settings, store, paths=[*found, *logs])
