"""Clean-up of all partitions from one machine: first decides, then deletes what was decided."""

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
from compactor.cleaning.due import CleanUpFacts
from compactor.clock import NoDeadline
from compactor.errors import CompactorError
from compactor.ports import Clock, ObjectStore
from compactor.probe.probe import traits_for
from compactor.settings.settings import Settings
from compactor_cli.console import progress

#: Of `compactor clean-up`, if nothing else is asked for.
DELETE_AFTER = "30d"
# Concurrent partitions: each holds the rows of one commit, perhaps tens of megabytes.
_CONCURRENT = 4


@dataclass(slots=True)
class Done(CleanUpSums):
    """The result of a clean-up, over all partitions.

    Attributes:
        refusals: the first sources that the store refused to delete, with its messages.
        unsafe: one line per commit whose output failed its check when deleting.
        failures: one line per partition whose clean-up failed.
    """

    refusals: list[str] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, receipt: CleanUpReceipt) -> None:
        """Add the result of one partition."""
        add_sums(self, receipt.counts)
        lines = [f"{one.key}: {one.reason}" for one in receipt.refusals]
        self.refusals = (self.refusals + lines)[:SHOWN_REFUSALS]
        self.unsafe += receipt.unsafe
        self.warnings += [line for line in receipt.warnings if line not in self.warnings]
        if receipt.status == "failed":
            self.failures.append(f"{receipt.path or '(root)'}: {receipt.error}: {receipt.cause}")

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return asdict(self)


class _Stopped(Exception):
    """Ends the work on a partition between two commits; internal."""


class Cleaning:
    """Clean-up of one source's commits in one destination.

    Args:
        settings: where source, destination and state are, and the retention.
        store: access to them.
        clock: the local clock.
        run_id: id of this clean-up in its records.
    """

    def __init__(self, settings: Settings, store: ObjectStore, clock: Clock, run_id: str) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._run_id = run_id
        self._stopped = threading.Event()
        self._facts = CleanUpFacts()

    def decide(self) -> list[Decision]:
        """Return what is due now, by partition; read-only.

        Raises:
            InvalidInput: the state cannot be listed or read.
            TransientStoreError: the store did not answer.
        """
        with progress("listing the commit logs"):
            due = find_due(self._settings, self._store, self._clock.now())
        entries = sum(work.entries for work in due)
        with progress("checking outputs", entries) as bar, self._threads() as pool:
            return list(pool.map(lambda work: decide(self._run(work.path, bar.advance)), due))

    def ask_store(self) -> None:
        """Probe how sources can be deleted safely; on AWS, no request is made.

        A recorded probe is not used: it may be that of a role that deletes nothing.

        Raises:
            InvalidInput: the store lacks conditions that clean-up requires.
            TransientStoreError: the store did not answer.
        """
        now = self._clock.now()
        traits = traits_for(self._settings.state, self._store, now, remembered_seconds=0)
        self._store = self._store.with_traits(traits)

    def act(self, decisions: Sequence[Decision]) -> Done:
        """Delete exactly the sources that were decided on.

        Each output is checked again, and so are the listings around the sources.
        """
        done = Done()
        self._facts.levels.clear()
        wanted = [one for one in decisions if one.due or one.orphans]
        commits = sum(len(one.due) for one in wanted)
        with progress("deleting", commits) as bar, self._threads() as pool:
            for receipt in pool.map(lambda one: self._act(one, bar.advance), wanted):
                done.add(receipt)
        return done

    def _act(self, decision: Decision, advance: Callable[[], None]) -> CleanUpReceipt:
        receipt = CleanUpReceipt(decision.path, self._run_id)
        run = replace(self._run(decision.path, advance), only=decision.only)
        try:
            clean_up(run, receipt)
        except CompactorError as error:
            # The other partitions continue.
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
            facts=self._facts,
        )

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor]:
        pool = ThreadPoolExecutor(_CONCURRENT, thread_name_prefix="clean-up")
        try:
            yield pool
        except BaseException:
            # Partitions in progress stop after their current commit.
            self._stopped.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
