"""Clean-up of all partitions from one machine: first the decision, then what was decided."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compactor.cleaning.clean_partition import CleanUpRun, Decision, clean_up, decide
from compactor.cleaning.clean_up_list import find_due
from compactor.cleaning.clean_up_receipts import (
    SHOWN_REFUSALS,
    CleanUpReceipt,
    CleanUpSums,
    add_sums,
)
from compactor.cleaning.expiry import expire, find_expired
from compactor.clock import NoDeadline
from compactor.conditions import traits_of
from compactor.errors import CompactorError
from compactor.log.process_cache import SeenState
from compactor.ports import Clock, ObjectStore
from compactor.probe.probe import ensure_asked
from compactor.settings.settings import Settings
from compactor_cli.console import progress

# Partitions at a time: each holds the rows of one commit, which may take tens of megabytes.
_CONCURRENT = 4


@dataclass(slots=True)
class Done(CleanUpSums):
    """What was done, over all partitions.

    Attributes:
        expired: old files of the state that were dropped.
        refusals: the first of the sources that the store did not delete, with its words.
        unsafe: one line for each commit whose output did not check out after all.
        failures: one line for each partition whose clean-up ended with an error.
    """

    expired: int = 0
    refusals: list[str] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, receipt: CleanUpReceipt) -> None:
        """Take in what was done to one partition."""
        add_sums(self, receipt.counts)
        lines = [f"{one.key}: {one.reason}" for one in receipt.refusals]
        self.refusals = (self.refusals + lines)[:SHOWN_REFUSALS]
        self.unsafe += receipt.unsafe
        self.warnings += [line for line in receipt.warnings if line not in self.warnings]
        if receipt.status == "failed":
            self.failures.append(f"{receipt.path or '(root)'}: {receipt.error}: {receipt.cause}")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class _Stopped(Exception):
    """Ends the work on a partition between two commits; it is never shown."""


class Cleaning:
    """Clean-up of one source's commits in one destination.

    Args:
        settings: where they are; sources past retention are to be deleted.
        store: where they are.
        clock: ours.
        run_id: what the records of this clean-up are signed with.
    """

    def __init__(self, settings: Settings, store: ObjectStore, clock: Clock, run_id: str) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._run_id = run_id
        self._stopped = threading.Event()
        self._seen = SeenState()

    def decide(self) -> list[Decision]:
        """What a clean-up would do now, for each partition with something due; reads only.

        Raises:
            InvalidInput: the state cannot be listed, or something not be read.
            TransientStoreError: the store did not answer.
        """
        with progress("listing the commit logs"):
            due = find_due(self._settings, self._store, self._clock.now())
        entries = sum(work.entries for work in due)
        with progress("checking outputs", entries) as bar, self._threads() as pool:
            return list(pool.map(lambda work: decide(self._run(work.path, bar.advance)), due))

    def count_expired(self) -> int:
        """How many old files of the state would be dropped now; reads only.

        Raises:
            InvalidInput: the state cannot be listed.
            TransientStoreError: the store did not answer.
        """
        with progress("looking for old files of the state"):
            found = find_expired(
                self._settings, self._store, self._clock.now(), run_id=self._run_id
            )
            return sum(len(batch) for batch in found)

    def ask_store(self) -> None:
        """Find out how sources can be deleted safely; once a day, the first thing written.

        Raises:
            InvalidInput: the store does not honour what clean-up stands on.
            TransientStoreError: the store did not answer.
        """
        now = self._clock.now()
        findings = ensure_asked(self._settings.state, self._store, now, deletes=True)
        self._store = self._store.with_traits(traits_of(findings))

    def act(self, decisions: Sequence[Decision]) -> Done:
        """Delete the sources that were decided on, and no others; drop what expired of the state.

        Each output is looked at again, and so is what surrounds the sources.
        """
        done = Done()
        self._seen.levels.clear()
        wanted = [one for one in decisions if one.due or one.orphans]
        commits = sum(len(one.due) for one in wanted)
        with progress("deleting", commits) as bar, self._threads() as pool:
            for receipt in pool.map(lambda one: self._act(one, bar.advance), wanted):
                done.add(receipt)
        self._expire(done)
        return done

    def _expire(self, done: Done) -> None:
        now = self._clock.now()
        found = expire(self._settings, self._store, now, NoDeadline(), run_id=self._run_id)
        done.expired = found.objects
        if found.fault:
            done.warnings.append(f"old files of the state stay: {found.fault}")

    def _act(self, decision: Decision, advance: Callable[[], None]) -> CleanUpReceipt:
        receipt = CleanUpReceipt(decision.path, self._run_id)
        run = replace(self._run(decision.path, advance), only=decision.only)
        try:
            clean_up(run, receipt)
        except CompactorError as error:
            # The other partitions are independent of it.
            receipt.status = "failed"
            receipt.error, receipt.cause = type(error).__name__, str(error)
        return receipt

    def _run(self, path: str, advance: Callable[[], None]) -> CleanUpRun:
        def on_entry() -> None:
            advance()
            if self._stopped.is_set():
                raise _Stopped

        return CleanUpRun(
            path=path,
            settings=self._settings,
            store=self._store,
            clock=self._clock,
            deadline=NoDeadline(),
            run_id=self._run_id,
            on_entry=on_entry,
            seen=self._seen,
        )

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor]:
        pool = ThreadPoolExecutor(_CONCURRENT, thread_name_prefix="clean-up")
        try:
            yield pool
        except BaseException:
            # Partitions under way end after the commit they are at.
            self._stopped.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
