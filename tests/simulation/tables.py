"""Schedules with a table: workers of two partitions, publishers, clean-ups, and other writers.

Between any two requests others may append to the table, compact it or expire its snapshots, which
deletes outputs; every request to S3 and to the catalog may crash, fail or lose its answer. Uploads
are lost after their commit, so commits are replaced while publishers run, and publishers name what
they listed at different times.

After each write a query of the table is checked: no record is found twice, and each is in its
source or in the table. In the end each record is in the table once, its source is gone, and another
publisher and clean-up find nothing to do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from unittest.mock import patch

from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, TransientStoreError
from compactor.log.entries import Output
from compactor.log.log_reader import StoredLog, all_logs
from compactor.model import Partition
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.sinks.contents import FileSet, TableChange
from compactor.sinks.named_history import Snapshot
from compactor.sinks.table_catalog import TableCatalog
from compactor.sinks.table_proof import TableProof
from compactor.sinks.table_publisher import Publishing, record_publish
from tests.simulation.choices import Choices
from tests.simulation.explored import Explored, explore_in_batches, explored
from tests.simulation.faults import DIES, PAGE_SIZE, Client, Fault, Guard, faults_of
from tests.simulation.ledger import DATA, LAKE, SOURCE, Violation, records_in
from tests.simulation.processes import Process
from tests.simulation.turns import Outcome, Schedule, played
from tests.support.examples import NOW, settings
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore
from tests.support.memory_tables import (
    ADDRESS,
    DeltaTable,
    IcebergTable,
    MemoryCatalog,
    TableGuard,
)

_DAY = 86_400.0
#: The partitions of every such schedule.
PARTITIONS = tuple(Partition(SOURCE, f"logs/{name}/", f"{name}/") for name in "ab")
_CALLS_TO_REST = 8
_BATCH = 100
_FOREIGN = 1_000_000
_LOST = frozenset({Fault.LOST_ANSWER, Fault.TIME_OUT, Fault.TRUNCATED})
_AT_THE_TABLE = frozenset({"table_merge", "table_commit"})
_DONE = _LOST | {Fault.NONE, Fault.CRASH_AFTER}


class TableWorld:
    """The store, a table, and the processes that work on them.

    Attributes:
        written: numbers of all records that ever arrived.
        removed: numbers of records, ours and others', that users removed from the table.
        acts: how often users removed something.
        rolled_back: users have rolled back the table.
    """

    def __init__(
        self, choices: Choices, without: frozenset[Guard], left_out: frozenset[TableGuard]
    ) -> None:
        self.clock = ManualClock(NOW)
        self.s3 = MemoryStore(self.clock, page_size=PAGE_SIZE)
        for bucket in (SOURCE, LAKE):
            self.s3.add_bucket(bucket)
        given = settings(delete_after="1d", settle_seconds=0)
        self.settings = replace(given, table=ADDRESS)
        iceberg = choices.one_of((True, False))
        kind = IcebergTable if iceberg else DeltaTable
        self.table: IcebergTable | DeltaTable = kind(self.s3, records_in)
        self.choices = choices
        self.written: set[int] = set()
        self.foreign = 0
        self.removed: set[int] = set()
        self.acts = 0
        self.rolled_back = False
        self._without = without
        self._left_out = left_out
        self._next = 0
        self._names = itertools.count(1)
        self._wrong = ""

    # Sources.

    def arrive(self, partition: Partition) -> str:
        name = f"{partition.prefix}{next(self._names)}.json"
        lines = [f'{{"a":"record-{self._next + n}"}}\n' for n in range(2)]
        self.written |= {self._next, self._next + 1}
        self._next += 2
        self.s3.seed(SOURCE, name, "".join(lines).encode())
        return f"a producer puts {name}"

    def arrive_unfit(self, partition: Partition) -> str:
        """Put records whose output does not fit the table until the table is changed."""
        said = self.arrive(partition)
        self.table.poison |= {self._next - 2, self._next - 1}
        return f"{said}, with a column of another type"

    def take_all(self) -> str:
        self.table.takes_all = True
        return "the table takes every output from here on"

    def lose_uploads(self, kept: Collection[str]) -> str:
        """Abort all uploads but these, as a lifecycle rule does."""
        for upload_id, key in self.s3.unfinished_uploads(LAKE).items():
            if upload_id not in kept:
                self.s3.abort_upload(LAKE, key, upload_id)
        return "the store aborts unfinished uploads"

    # What others do to the table.

    def append_foreign(self) -> str:
        self.table.append_foreign([_FOREIGN + self.foreign])
        self.foreign += 1
        return "somebody else appends to the table"

    def rewrite(self) -> str:
        self.table.rewrite()
        return "the table is compacted"

    def expire(self) -> str:
        self.table.expire()
        return "the table's snapshots expire"

    def rewrite_and_expire(self) -> str:
        self.rewrite()
        self.expire()
        return "the table is compacted, and its snapshots expire"

    def expire_some(self) -> str:
        """Expire any snapshots but the current one, as pyiceberg or another library does."""
        table = self.table
        if not isinstance(table, IcebergTable):
            return self.expire()
        others = [name for name in table.snapshots if name != table.current]
        chosen = [name for name in others if self.choices.chance(0.5)]
        by_pyiceberg = self.choices.chance(0.7)
        table.expire_these(chosen, by_pyiceberg=by_pyiceberg)
        return f"snapshots {chosen} expire{' by pyiceberg' if by_pyiceberg else ''}"

    # What users remove.

    def delete_row(self) -> str:
        rows = sorted(self.table.records())
        if not rows:
            return "a user finds nothing to delete"
        row, in_place = self.choices.one_of(rows), self.choices.chance(0.5)
        how = "by a delete file" if in_place else "by another file"
        self._removing(lambda: self.table.delete(row, in_place=in_place))
        return f"a user deletes {row} {how}"

    def overwrite(self) -> str:
        """Overwrite all rows with the same number of another writer's rows."""
        many = max(self.table.records().total(), 1)
        numbers = [_FOREIGN + self.foreign + one for one in range(many)]
        self.foreign += many
        self._removing(lambda: self.table.overwrite(numbers))
        return f"a user overwrites the table with {many} rows"

    def take_back(self) -> str:
        if not self._removing(self.table.go_back):
            return "the table cannot be rolled back"
        self.rolled_back = True
        return "a user rolls the table back"

    def _removing(self, act: Callable[[], object]) -> object:
        before = set(self.table.records())
        done = act()
        after = set(self.table.records())
        self.removed = (self.removed | before) - after
        self.acts += bool(before - after)
        return done

    # Processes.

    def worker(self, partition: Partition) -> Process:
        run_id = f"run-{next(self._names)}"

        def work() -> object:
            run = PartitionRun(
                partition, self.settings, self._client(process), self.clock, NoDeadline(), run_id
            )
            return compact_partition(run, Counts())

        process = Process(f"worker of {partition.path} ({run_id})", work, self.choices.below)
        return process

    def publisher(self) -> Process:
        run_id = f"publisher-{next(self._names)}"

        def work() -> object:
            return record_publish(self._publishing(process, run_id))

        process = Process(run_id, work, self.choices.below)
        return process

    def cleaner(self, partition: Partition) -> Process:
        run_id = f"clean-up-{next(self._names)}"

        def work() -> object:
            return self._cleaned_up(process, run_id, partition.path)

        process = Process(f"{run_id} of {partition.path}", work, self.choices.below)
        return process

    def _publishing(self, process: Process, run_id: str) -> Publishing:
        return Publishing(
            self.settings,
            self._client(process),
            self._catalog(process),
            self.clock,
            NoDeadline(),
            run_id,
            entry_outputs=2,
            commit_outputs=3,
            pause=lambda _: None,
        )

    def _cleaned_up(self, process: Process, run_id: str, path: str) -> object:
        seen: set[int] = set()

        def ask(call: Call) -> Fault:
            if call.name == "delete_source":
                self._judge_delete(call.key, seen)
            fault = process.ask(call)
            if call.name == "table_load" and fault in _DONE and self.table.uuid:
                seen.clear()
                seen.update(self.table.records())
            return fault

        client = Client(self.s3, ask, self._without)
        run = CleanUpRun(
            path,
            self.settings,
            client,
            self.clock,
            NoDeadline(),
            run_id,
            open_catalog=lambda *_: self._catalog(process, ask),
        )
        before = clean_up_receipts.earlier(self.settings, run_id, run.partition, client)
        return record_clean_up(run, before)

    def _client(self, process: Process) -> Client:
        return Client(self.s3, process.ask, self._without)

    def _judge_delete(self, key: str, seen: Collection[int]) -> None:
        """Note a violation if clean-up deletes a source whose records were not in the table."""
        body = self.s3.contents(SOURCE).get(key, b"")
        wrong = sorted(set(records_in(body)) - set(seen))
        if wrong:
            self._wrong = f"clean-up deletes {key}, and {wrong} were not in the table as it looked"

    def _catalog(
        self, process: Process, asks: Callable[[Call], Fault] | None = None
    ) -> TableCatalog:
        return MemoryCatalog(self.table, self._asks(process, asks), self._left_out)

    def _asks(
        self, process: Process, asks: Callable[[Call], Fault] | None = None
    ) -> Callable[[str, Callable[[], object]], object]:
        """Return a hook that lets the process wait before catalog requests, and applies faults."""
        dead = False
        asks = asks or process.ask

        def ask(name: str, request: Callable[[], object]) -> object:
            nonlocal dead
            if dead:
                raise Crashed("already dead")
            call = Call(name, "catalog", ADDRESS)
            fault = asks(call)
            dead = fault in DIES
            answer = request() if fault in _DONE else None
            if dead:
                raise Crashed(f"{fault}: {call}")
            if fault is not Fault.NONE:
                raise TransientStoreError(f"{fault}: {call}")
            return answer

        return ask

    # What must hold.

    def look(self) -> None:
        """Check every promise against what a query finds now.

        Raises:
            Violation: a promise is broken; names the records.
        """
        if self._wrong:
            raise Violation(self._wrong)
        try:
            found = self.table.records()
        except AssertionError as error:
            raise Violation(str(error)) from error
        twice = sorted(number for number, count in found.items() if count > 1)
        if twice:
            raise Violation(f"records {twice} are in the table twice")
        lost = self.written - set(found) - self.in_sources() - self.removed
        if lost:
            raise Violation(f"records {sorted(lost)} are neither in a source nor in the table")
        foreign = self.foreign_records() - set(found) - self.removed
        if foreign:
            raise Violation(f"what somebody else wrote is gone: {sorted(foreign)}")

    def foreign_records(self) -> set[int]:
        """Return the numbers of other writers' records."""
        return {_FOREIGN + number for number in range(self.foreign)}

    def in_sources(self) -> set[int]:
        return {n for body in self.s3.contents(SOURCE).values() for n in records_in(body)}

    def must_be_at_rest(self) -> None:
        """Check that every record is in the table unless a user removed it, and in no source.

        Raises:
            Violation: this is not the case.
        """
        self.look()
        missing = self.written - set(self.table.records()) - self.removed
        if missing:
            raise Violation(f"records {sorted(missing)} never came into the table")
        self.must_be_cleaned_up()

    def must_be_cleaned_up(self) -> None:
        """Check that sources are left only if rows were removed or a rewrite is untraceable.

        Raises:
            Violation: another source is left.
        """
        if self.in_sources() and not (self.acts or self.table.forgot):
            raise Violation(f"clean-up left {sorted(self.in_sources())}")

    def must_have_what_fits(self) -> None:
        """Check that outputs that do not fit keep no other output out of the table.

        Raises:
            Violation: an output that fits is missing.
        """
        poison = set() if self.table.takes_all else self.table.poison
        there = set(self.table.records())
        for key, body in self.s3.contents(LAKE, DATA).items():
            records = set(records_in(body))
            if not records & poison and records - there - self.removed:
                raise Violation(f"{key} fits, and is not in the table")

    def kept(self) -> object:
        """Return what a run and a publisher with nothing to do must not change."""
        log = self.s3.contents(LAKE, "_compactor/compacted/table/")
        return log, self.s3.contents(LAKE, DATA), self.table.records()


def events_at(world: TableWorld, tell: Callable[[str], object]) -> dict[str, Callable[[], object]]:
    """Return what others may do to the table; empty while it does not exist."""
    if not world.table.uuid:
        return {}
    return {
        "table appended to by others": lambda: tell(world.append_foreign()),
        "table compacted": lambda: tell(world.rewrite()),
        "snapshots expired": lambda: tell(world.expire()),
        "some snapshots expired": lambda: tell(world.expire_some()),
        "table compacted and expired": lambda: tell(world.rewrite_and_expire()),
    }


class DisturbedCommits(Schedule):
    """Schedules in which commits to the table often fail or find that others were first."""

    AT_THE_TABLE = 0.1
    world: TableWorld

    def _another_publisher(self) -> Process:
        return self.world.publisher()

    def _others_at_the_table(self) -> Sequence[Callable[[], object]]:
        world = self.world
        return (
            self._overtake,
            lambda: self.tell(world.append_foreign()),
            lambda: self.tell(world.rewrite_and_expire()),
        )

    def _fault_rate_of(self, process: Process) -> float:
        return 4 * self._fault_rate if _is_at_the_table(process) else self._fault_rate

    def _next(self) -> Process:
        self._disturb_commits()
        return super()._next()

    def _disturb_commits(self) -> None:
        """Let others act while a process is about to commit to the table."""
        if not any(_is_at_the_table(one) for one in self._processes):
            return
        if self.world.table.uuid and self._choices.chance(self.AT_THE_TABLE):
            self._choices.one_of(self._others_at_the_table())()
            self.outcome.faults["somebody else at the table meanwhile"] += 1
            self.world.look()

    def _overtake(self) -> None:
        """Run another publisher until it is about to commit as well; either may be first."""
        if len(self._processes) < self.MOST_PROCESSES:
            process = self._another_publisher()
            self._start(process)
            while not process.ended and not _is_at_the_table(process):
                self._turn(process)


def _is_at_the_table(process: Process) -> bool:
    return process.waiting is not None and process.waiting.name in _AT_THE_TABLE


class TableSchedule(Schedule):
    TURNS = 140
    EVENT_RATE = 0.09
    SWITCH_RATE = 0.3
    MOST_PROCESSES = 4
    WRITES = frozenset({"put", "create", "complete_upload", "delete_source", "table_commit"})

    def __init__(
        self, world: TableWorld, choices: Choices, outcome: Outcome, *, tell: bool
    ) -> None:
        self.world = world
        self._named_before: set[Partition] = set()
        super().__init__(world.clock, choices, outcome, tell=tell)
        self._has_users = choices.chance(0.5)
        self._is_taken_back = choices.chance(0.4)

    def _begin(self) -> None:
        for _ in range(2 + self._choices.below(3)):
            self._arrive()
        self._start_worker()

    def _more(self) -> bool:
        self._choices.one_of((self._start_publisher, self._start_worker))()
        return True

    def _look(self) -> None:
        self.world.look()

    def _faults_of(self, call: Call) -> Sequence[Fault]:
        return [one for one in faults_of(call) if one is not Fault.FLIPPED]

    def end(self) -> None:
        """Run without faults until everything is at rest, and check the final state.

        Raises:
            Violation: the final state is wrong.
        """
        if self.world.rolled_back and self._is_refused():
            return
        self._bring_in()
        self._choices.one_of((self._nothing, self.world.rewrite_and_expire))()
        self.world.look()
        self.world.clock.advance(2 * _DAY)
        for partition in PARTITIONS:
            self._finish(self.world.cleaner(partition))
        self.world.must_be_at_rest()
        before = self.world.kept()
        for partition in PARTITIONS:
            self._finish(self.world.worker(partition))
        self._finish(self.world.publisher())
        if self.world.kept() != before:
            raise Violation("a run and a publisher with nothing to do changed something")

    def _is_refused(self) -> bool:
        """Return whether the rolled-back table is refused; if so, check that it stays as it is."""
        self._end_all()
        before = self.world.kept()
        refused = isinstance(self._finish(self.world.publisher()).error, IntegrityError)
        if not refused:
            return False
        self.outcome.faults["a table that was taken back is refused"] += 1
        self.world.clock.advance(2 * _DAY)
        for partition in PARTITIONS:
            self._finish(self.world.cleaner(partition))
        if self.world.kept() != before:
            raise Violation("a table that was taken back was changed")
        return True

    def _judge(self, process: Process) -> None:
        if self.world.rolled_back and isinstance(process.error, IntegrityError):
            self.tell(f"{process.name} ends: {process.error!r}")
            return
        super()._judge(process)

    def _end_all(self) -> None:
        self.tell("no more faults from here on")
        while self._processes:
            self._turn(self._processes[-1])

    def _bring_in(self) -> None:
        """Without faults, compact everything and publish it to the table."""
        self._end_all()
        for partition in PARTITIONS:
            if partition in self._named_before:
                # Sources of an output that was named for a void commit wait for the next output.
                self.tell(self.world.arrive(partition))
            self._to_rest(partition)
        self._finish(self.world.publisher())
        self.world.must_have_what_fits()
        self.tell(self.world.take_all())
        faults = getattr(self._finish(self.world.publisher()).answer, "faults", ())
        if faults:
            raise Violation(f"a publisher leaves {faults}")

    def _to_rest(self, partition: Partition) -> None:
        for _ in range(_CALLS_TO_REST):
            answer = self._finish(self.world.worker(partition)).answer
            if not getattr(answer, "counts", Counts(objects_in=1)).objects_in:
                return
        raise Violation(f"{partition.path} is still not at rest after {_CALLS_TO_REST} calls")

    def _nothing(self) -> str:
        return ""

    # Events.

    def _arrive(self) -> None:
        self.tell(self.world.arrive(self._choices.one_of(PARTITIONS)))

    def _arrive_unfit(self) -> None:
        self.tell(self.world.arrive_unfit(self._choices.one_of(PARTITIONS)))

    def _start_worker(self) -> None:
        self._start(self.world.worker(self._choices.one_of(PARTITIONS)))

    def _start_publisher(self) -> None:
        self._start(self.world.publisher())

    def _start_cleaner(self) -> None:
        self._start(self.world.cleaner(self._choices.one_of(PARTITIONS)))

    def _replace_between(self) -> None:
        """Replace a commit after a publisher listed it and before it checks the output."""
        world, partition = self.world, self._choices.one_of(PARTITIONS)
        if len(self._processes) > self.MOST_PROCESSES - 2:
            return
        self.tell(world.arrive(partition))
        uploads = list(world.s3.unfinished_uploads(LAKE))
        worker = self._until(world.worker(partition), _publishes)
        if worker.ended:
            return
        self._turn(worker, Fault.CRASH_BEFORE)
        self.tell(world.lose_uploads(uploads))
        self._until(world.publisher(), _looks_at_an_output)
        if self._choices.chance(0.3):
            self._commit_and_die(world.worker(partition))
            return
        before = all_logs(world.settings.state, world.s3)
        self._finish(world.worker(partition))
        self._until(world.publisher(), _names_outputs)
        if self._choices.chance(0.5):
            self._publish_listed(before)
            self._named_before.add(partition)

    def _publish_listed(self, logs: Sequence[StoredLog]) -> None:
        """Run a publisher that listed these logs earlier, and does not list again."""
        self.tell("a publisher with an older list, that does not look again")
        with (
            _look_at_the_log_once(),
            patch("compactor.sinks.unnamed_outputs.all_logs", lambda *_: logs),
        ):
            self._finish(self.world.publisher())

    def _commit_and_die(self, worker: Process) -> None:
        self._until(worker, _commits)
        if not worker.ended:
            self._turn(worker, Fault.CRASH_AFTER)

    def _list_earlier(self) -> None:
        """Bring two publishers to naming outputs, of which one has listed more."""
        if len(self._processes) > self.MOST_PROCESSES - 2:
            return
        self._until(self.world.publisher(), _names_outputs)
        partition = self._choices.one_of(PARTITIONS)
        self.tell(self.world.arrive(partition))
        self._finish(self.world.worker(partition))
        self._until(self.world.publisher(), _names_outputs)

    def _until(self, process: Process, waits: Callable[[Call], bool]) -> Process:
        """Run only this process until it is about to make such a request, or ends."""
        self._start(process)
        while not process.ended and not (process.waiting and waits(process.waiting)):
            self._turn(process)
        return process

    def _events(self) -> dict[str, Callable[[], object]]:
        world = self.world
        events: dict[str, Callable[[], object]] = {
            "late arrival": self._arrive,
            "late arrival that does not fit": self._arrive_unfit,
            "table takes every output": lambda: self.tell(world.take_all()),
            "another worker": self._start_worker,
            "another publisher": self._start_publisher,
            "clean-up": self._start_cleaner,
            "commit replaced between two publishers": self._replace_between,
            "publishers with lists of different age": self._list_earlier,
            "retention passes": lambda: world.clock.advance(2 * _DAY),
        }
        return events | events_at(world, self.tell) | self._acts_of_users()

    def _acts_of_users(self) -> dict[str, Callable[[], object]]:
        world = self.world
        if not world.table.uuid or not self._has_users:
            return {}
        acts: dict[str, Callable[[], object]] = {
            "rows deleted by a user": lambda: self.tell(world.delete_row()),
            "table overwritten by a user": lambda: self.tell(world.overwrite()),
        }
        if self._is_taken_back:
            acts["table rolled back by a user"] = lambda: self.tell(world.take_back())
        return acts


def _publishes(call: Call) -> bool:
    return call.name == "complete_upload"


def _commits(call: Call) -> bool:
    return call.name == "create" and "/commits/" in call.key and call.key.endswith(".json.gz")


def _looks_at_an_output(call: Call) -> bool:
    return call.name == "head" and call.key.startswith(DATA)


def _names_outputs(call: Call) -> bool:
    return call.name == "create" and "/table/" in call.key


@dataclass(frozen=True)
class TableMutation:
    """A way to remove one guard of the table; like :class:`tests.simulation.mutations.Mutation`."""

    without: frozenset[Guard] = frozenset()
    left_out: frozenset[TableGuard] = frozenset()
    applied: Callable[[], AbstractContextManager[object]] = nullcontext


unchanged = TableMutation()


@contextmanager
def _number_without_look() -> Iterator[None]:
    """Name outputs without checking what others have named since."""
    with patch("compactor.sinks.table_publisher._overtaken", lambda *_: False):
        yield


@contextmanager
def _rebuild_what_the_table_deleted() -> Iterator[None]:
    with patch("compactor.partition.work.is_in_table", lambda *_: False):
        yield


@contextmanager
def _delete_without_table() -> Iterator[None]:
    with patch("compactor.sinks.table_proof.TableProof.has", lambda *_: True):
        yield


@contextmanager
def _name_what_is_not_readable() -> Iterator[None]:
    with patch("compactor.sinks.unnamed_outputs.is_published", lambda *_: True):
        yield


@contextmanager
def _look_at_the_log_once() -> Iterator[None]:
    with patch("compactor.sinks.unnamed_outputs._replaced_since", lambda *_: []):
        yield


@contextmanager
def _believe_earlier_lists() -> Iterator[None]:
    """Name outputs from an old list, whatever others have named since."""
    with patch("compactor.sinks.table_publisher._overtaken", lambda *_: False):
        yield


@contextmanager
def _take_each_replacement_for_another_output() -> Iterator[None]:
    with patch("compactor.sinks.unnamed_outputs._is_same", lambda *_: False):
        yield


@contextmanager
def _take_what_was_set_aside_for_given() -> Iterator[None]:
    """Treat set-aside outputs as published, and trust outputs that exist on S3.

    Without the latter, the table's own files would still show the mistake.
    """
    names = "compactor.sinks.table_entries.TableLogState.names"
    with (
        patch(names, lambda state, path, sequence: sequence <= state.reached(path)),
        _believe_outputs_that_stand(),
    ):
        yield


@contextmanager
def _pass_void_commits_alone() -> Iterator[None]:
    with patch("compactor.sinks.unnamed_outputs._settled", lambda *_: True):
        yield


@contextmanager
def _believe_outputs_that_stand() -> Iterator[None]:
    """Treat an output that exists on S3 as being in the table."""
    require = TableProof.require_rows

    def require_rows(self: TableProof, output: Output, *, stands: bool) -> None:
        if not stands:
            require(self, output, stands=stands)

    with patch.object(TableProof, "require_rows", require_rows):
        yield


@contextmanager
def _take_changes_for_rewrites() -> Iterator[None]:
    """Treat every change that adds as many rows as it removes as a rewrite."""

    def fault_of(change: TableChange, one: FileSet) -> str:
        return "" if one.removed_rows == one.added_rows else f"{change.at} removed it"

    with patch("compactor.sinks.contents._fault_of", fault_of):
        yield


@contextmanager
def _believe_rewrites() -> Iterator[None]:
    """Trust every change that calls itself a rewrite, without comparing row counts."""

    def fault_of(change: TableChange, one: FileSet) -> str:
        del one
        return "" if change.rewrites else f"{change.at} removed it"

    with patch("compactor.sinks.contents._fault_of", fault_of):
        yield


@contextmanager
def _stop_at_the_first_rewrite() -> Iterator[None]:
    with patch("compactor.sinks.contents._first_fault", lambda *_: ""):
        yield


@contextmanager
def _believe_what_nothing_tells_of() -> Iterator[None]:
    with patch("compactor.sinks.contents._UNKNOWN", ""):
        yield


@contextmanager
def _count_ancestors_that_are_known() -> Iterator[None]:
    """Do not read earlier metadata for expired snapshots."""

    def judged(
        snapshots: Mapping[int, Snapshot], current: int, ours: int, sequence: int, _: object
    ) -> str:
        at: int | None = current
        while at is not None and at in snapshots:
            if at == ours:
                return ""
            if snapshots[at].sequence <= sequence:
                return "it was rolled back"
            at = snapshots[at].parent
        return "it was replaced" if at is None else ""

    with patch("tests.support.memory_tables.rolled_back", judged):
        yield


#: Seeds of schedules that noticed; an outdated one only costs time.
TABLE_NOTICED: Mapping[str, int] = {
    "condition of the table's commit": 0,
    "look at the table's number before each commit": 0,
    "create-if-absent of entries": 2,
    "look at what others named": 0,
    "look at the table before an output is built again": 526,
    "look at the table before sources are deleted": 11,
    "look at the output before it is named": 0,
    "look at the log after its outputs": 125,
    "leftovers found again after a lost race": 0,
    "the same output under a later commit": 0,
    "void commits with what replaces them": 11,
    "look at what is deleted of a file": 77,
    "look at the table where the output stands": 65,
    "what a commit says that it did": 9,
    "rows of a rewrite": 154,
    "look at what took the rows": 24,
    "a history that tells all": 2,
    "earlier metadata of what expired": 58,
    "sources of what was set aside": 26,
}

TABLE_MUTATIONS: Mapping[str, TableMutation] = {
    **{guard.value: TableMutation(left_out=frozenset({guard})) for guard in TableGuard},
    "create-if-absent of entries": TableMutation(without=frozenset({Guard.CREATE_IF_ABSENT})),
    "look at what others named": TableMutation(applied=_number_without_look),
    "look at the table before an output is built again": TableMutation(
        applied=_rebuild_what_the_table_deleted
    ),
    "look at the table before sources are deleted": TableMutation(applied=_delete_without_table),
    "look at the output before it is named": TableMutation(applied=_name_what_is_not_readable),
    "look at the log after its outputs": TableMutation(applied=_look_at_the_log_once),
    "leftovers found again after a lost race": TableMutation(applied=_believe_earlier_lists),
    "the same output under a later commit": TableMutation(
        applied=_take_each_replacement_for_another_output
    ),
    "void commits with what replaces them": TableMutation(applied=_pass_void_commits_alone),
    "look at the table where the output stands": TableMutation(applied=_believe_outputs_that_stand),
    "what a commit says that it did": TableMutation(applied=_take_changes_for_rewrites),
    "rows of a rewrite": TableMutation(applied=_believe_rewrites),
    "look at what took the rows": TableMutation(applied=_stop_at_the_first_rewrite),
    "a history that tells all": TableMutation(applied=_believe_what_nothing_tells_of),
    "earlier metadata of what expired": TableMutation(applied=_count_ancestors_that_are_known),
    "sources of what was set aside": TableMutation(applied=_take_what_was_set_aside_for_given),
}


def play_table(
    seed: int,
    *,
    replay: Sequence[int] | None = None,
    mutation: TableMutation = unchanged,
    tell: bool = False,
) -> Outcome:
    """Run one schedule to its end, or to the first broken promise."""
    choices = Choices(seed, replay)

    def make(outcome: Outcome) -> TableSchedule:
        world = TableWorld(choices, mutation.without, mutation.left_out)
        return TableSchedule(world, choices, outcome, tell=tell)

    return played(choices, make)


def explore_many_tables(first: int, count: int) -> Explored:
    """Run schedules on all processors."""
    return explore_in_batches(explore_tables, first, count, batch=_BATCH)


def explore_tables(first: int, count: int, name: str = "") -> Explored:
    """Run schedules sequentially; with a mutation, stop at the first broken promise."""
    mutation = TABLE_MUTATIONS[name] if name else unchanged
    with mutation.applied():
        return explored(
            lambda seed: play_table(seed, mutation=mutation), first, count, all_of_them=not name
        )
