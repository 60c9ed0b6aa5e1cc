"""Repair of what the version before wrote: first the decision, then what was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from compactor.catalogs.readers import open_readers
from compactor.cleaning.decide import own_sources
from compactor.errors import CompactorError, IntegrityError
from compactor.layout import partition_at
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.old_rules import is_doubtful
from compactor.log.passed import PassedRecord, has_passed, write_passed
from compactor.log.stored import StoredLog, every_entry, read_entry
from compactor.outputs.undo import Undoing, changed_source, undo
from compactor.ports import Clock, ObjectStore
from compactor.readers.refresh import switch_back
from compactor.settings.settings import Settings
from compactor_cli.commit_logs import all_logs
from compactor_cli.console import Bar
from compactor_cli.old_outputs import ROWS_DROPPED, UNDECIDED, Finding

#: What is done about a finding.
UNDO, LOST, LEAVE, PASS = "undo", "sources_gone", "leave", "pass"
UNFINISHED = "undo_unfinished"
_BY = "repair"

Examine = Callable[[Commit, ObjectStore], Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Case:
    """One commit that something is wrong with, and what is to be done about it.

    Attributes:
        action: ``undo`` where every source still stands; ``sources_gone``; ``leave`` where nobody
            can tell; ``pass`` where somebody did.
        through: the last entry of the log when this was decided.
    """

    path: str
    sequence: int
    commit_id: str
    finding: Finding
    action: str
    through: int

    @property
    def line(self) -> str:
        """For a person."""
        found = self.finding
        return (
            f"{self.path or '(root)'} commit {self.sequence}: {found.kind}:"
            f" {found.output_key}: {found.detail}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "finding": self.finding._asdict()}


@dataclass(slots=True)
class Decision:
    """What a repair would do now.

    Attributes:
        examined: commits.
        passed: those of older rules that are sound, and not recorded as such yet, by path.
        failures: one line for each log or output that could not be read.
    """

    examined: int = 0
    cases: list[Case] = field(default_factory=list)
    passed: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Done:
    """What a repair did."""

    undone: list[Case] = field(default_factory=list)
    recorded: int = 0
    failures: list[str] = field(default_factory=list)


class Repairing:
    """Repair of one source's commits in one destination.

    Args:
        settings: where they are.
        store: where they are.
        clock: ours.
        run_id: what entries and records are signed with.
        examine: tells what is wrong with the output of a commit.
        undecided: what first lines are that cannot be told from rows: ``headers``, ``rows``, or
            ``leave`` where nobody knows.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        clock: Clock,
        run_id: str,
        *,
        examine: Examine,
        undecided: str = "leave",
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._run_id = run_id
        self._examine = examine
        self._undecided = undecided

    def logs(self) -> list[StoredLog]:
        """Every log of the destination.

        Raises:
            InvalidInput: there is none.
        """
        return all_logs(self._settings.state, self._store)

    def decide(self, logs: Sequence[StoredLog], bar: Bar) -> Decision:
        """Read every output that may be wrong, and choose; reads only."""
        decision = Decision()
        for log in logs:
            try:
                for commit, valid in every_entry(self._store, log.state.bucket, log.keys):
                    if valid and self._is_ours(commit):
                        self._decide(decision, log, commit)
                    bar.advance()
            except IntegrityError as error:
                decision.failures.append(str(error))
        return decision

    def act(self, decision: Decision, bar: Bar) -> Done:
        """Undo and record what was decided, and nothing else."""
        done = Done()
        for case in decision.cases:
            try:
                if case.action == UNDO:
                    self._undo(case)
                    done.undone.append(case)
                elif case.action == PASS:
                    self._pass(case.path, case.sequence, case.commit_id)
                    done.recorded += 1
            except CompactorError as error:
                # Other commits are independent of it.
                done.failures.append(f"{case.line}: {type(error).__name__}: {error}")
            bar.advance()
        for path, commits in decision.passed.items():
            for sequence, commit_id in commits:
                self._pass(path, sequence, commit_id)
                done.recorded += 1
        return done

    def lost(self, decision: Decision) -> Iterator[tuple[Case, Commit]]:
        """The commits that dropped rows, one at a time, where sources are gone."""
        for case in decision.cases:
            if case.finding.kind == ROWS_DROPPED and case.action == LOST:
                yield case, self._read(case)

    def _is_ours(self, commit: Commit) -> bool:
        if commit.output is None or not commit.rows:
            return False
        return len(own_sources(commit, self._settings.source)) == len(commit.rows)

    def _decide(self, decision: Decision, log: StoredLog, commit: Commit) -> None:
        decision.examined += 1
        try:
            findings = self._unfinished(log, commit) or self._examine(commit, self._store)
        except IntegrityError as error:
            name = f"{log.path or '(root)'} commit {commit.sequence}"
            decision.failures.append(f"{name}: {error}")
            return
        for finding in findings[:1]:
            action = self._action(commit, finding)
            told = finding
            if finding.kind == UNDECIDED and self._undecided == "rows":
                told = finding._replace(kind=ROWS_DROPPED)
            case = Case(log.path, commit.sequence, commit.commit_id, told, action, max(log.entries))
            decision.cases.append(case)
        if not findings and is_doubtful(commit) and not self._has_passed(log.path, commit):
            one = (commit.sequence, commit.commit_id)
            decision.passed.setdefault(log.path, []).append(one)

    def _action(self, commit: Commit, finding: Finding) -> str:
        if finding.kind == UNDECIDED and self._undecided != "rows":
            return PASS if self._undecided == "headers" else LEAVE
        return LOST if changed_source(commit, self._store) else UNDO

    def _unfinished(self, log: StoredLog, commit: Commit) -> tuple[Finding, ...]:
        """A repair that was killed behind the deletion of an output is to be gone on with."""
        output = commit.output
        if output is None or self._store.head(output.bucket, output.key) is not None:
            return ()
        kept = self._undoing(log.path, 0).kept_at(commit)
        if self._store.head(log.state.bucket, kept) is None:
            raise IntegrityError(f"s3://{output.bucket}/{output.key} is gone")
        detail = "an earlier repair took its output away, and did not come to its end"
        return (
            Finding(commit.sequence, output.key, UNFINISHED, len(commit.rows), None, None, detail),
        )

    def _undo(self, case: Case) -> None:
        work = self._undoing(case.path, case.through)
        why = f"{case.finding.kind}: {case.finding.detail}"
        undo(self._read(case), why, work, run_id=self._run_id, now=self._clock.now())

    def _undoing(self, path: str, through: int) -> Undoing:
        partition = partition_at(self._settings, path)
        log = CommitLog(self._store, self._settings, partition)
        unseen = partial(
            switch_back,
            partition=partition,
            settings=self._settings,
            store=self._store,
            clock=self._clock,
            open=open_readers,
        )
        return Undoing(self._store, self._settings.state, path, log, through, unseen)

    def _read(self, case: Case) -> Commit:
        log = StoredLog(case.path, self._settings.state)
        key = log.key_of(case.sequence)
        commit = read_entry(self._store, log.state.bucket, key, case.sequence)
        if commit.commit_id != case.commit_id:
            raise IntegrityError(f"s3://{log.state.bucket}/{key} is not what it was")
        return commit

    def _has_passed(self, path: str, commit: Commit) -> bool:
        state = self._settings.state
        return has_passed(state, path, commit.sequence, commit.commit_id, self._store)

    def _pass(self, path: str, sequence: int, commit_id: str) -> None:
        record = PassedRecord(commit_id=commit_id, at=self._clock.now(), by=_BY)
        write_passed(self._settings.state, path, sequence, record, self._store)
