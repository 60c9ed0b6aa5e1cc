"""Schedules of a table with a key: it must have the last record of each key, in whatever order.

Workers, Spark drivers that merge, and clean-ups run as in :mod:`tests.simulation.tables`. Drivers
are killed between the table log, both merges and the mark, two of them run concurrently, and others
write to the table, compact it and expire snapshots of it and its key table. In some schedules
another program rolls back the table or its key table.

The expected content follows only from all records that were ever put: not from a log, an output or
the order of merges. At no time is a key's row older than one seen before. In the end the table has
exactly the last records; older ones that arrive later change nothing.

    python -m tests.simulation.keyed --schedules 5000
    python -m tests.simulation.keyed --story 1234
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

from pyspark.sql.types import LongType, StringType, StructField, StructType

from compactor.catalogs.keyed import KeyedCatalog
from compactor.errors import IntegrityError
from compactor.model import Partition
from compactor.sinks.merged_tables import look_at_merge
from compactor.sinks.table_catalog import TableCatalog
from compactor.sinks.table_publisher import record_publish
from compactor.sinks.upserts import POSITION, SOURCE_KEY, key_of, merge_keys
from compactor_spark.upsert.tables import SparkUpserts
from tests.simulation.choices import Choices
from tests.simulation.explored import Explored, explore_in_batches, explored
from tests.simulation.faults import Fault, Guard
from tests.simulation.ledger import DATA, LAKE, SOURCE, Violation, records_in
from tests.simulation.playing import command_line
from tests.simulation.processes import Process
from tests.simulation.tables import (
    PARTITIONS,
    TABLE_MUTATIONS,
    DisturbedCommits,
    TableMutation,
    TableSchedule,
    TableWorld,
    unchanged,
)
from tests.simulation.turns import Outcome, played
from tests.support.memory_keyed import (
    MemoryEngine,
    Session,
    Shape,
    SparkFailed,
    Table,
    without_spark,
)
from tests.support.memory_store import Call
from tests.support.memory_tables import ADDRESS, MemoryCatalog, TableGuard
from tests.support.spark_stand_in import workers_as_spark

_ROWS = "rows"
_KEYS = 4
_TIMES = (2, None, 1, 3, 4, 5)
_OPERATIONS = ("U", "D", None, "U")
_BATCH = 100
_SCHEMA = StructType(
    [
        StructField("k", StringType()),
        StructField("at", LongType()),
        StructField("op", StringType()),
        StructField("v", LongType()),
        StructField(SOURCE_KEY, StringType()),
        StructField(POSITION, LongType()),
    ]
)
_numbers = lru_cache(maxsize=10_000)(records_in)


class Record(NamedTuple):
    """A record that a producer put; ``at`` is None if it has no time."""

    number: int
    k: str
    at: int | None
    op: str | None
    source: str
    position: int

    @property
    def age(self) -> tuple[int, str, int]:
        """Rank among records of the same key: the highest is the last."""
        return (-1 if self.at is None else self.at, self.source, self.position)


def last_of_each(records: Iterable[Record]) -> dict[str, Record]:
    """Return the last record of each key, deletes included."""
    return {one.k: one for one in sorted(records, key=lambda one: one.age)}


class KeyedWorld(TableWorld):
    """The store, a table with a key, and the processes that work on them.

    Attributes:
        put: every record that was ever put, by number.
        taken_back: how another program took back one of the two tables; empty before.
    """

    def __init__(
        self, choices: Choices, without: frozenset[Guard], left_out: frozenset[TableGuard]
    ) -> None:
        super().__init__(choices, without, left_out)
        self.settings = replace(
            self.settings, upsert_key=("k",), order_by=("at",), delete_when={"op": ("D",)}
        )
        key = key_of(self.settings)
        assert key is not None
        self._key = key
        self.keys: Table = type(self.table)(self.s3, records_in)
        self.put: dict[int, Record] = {}
        self.taken_back = ""
        self._seen: dict[str, Record] = {}
        both: Sequence[Table] = (self.table, self.keys)
        self._shapes = {
            name: Shape(one, []) for name, one in zip((_ROWS, f"{_ROWS}__keys"), both, strict=True)
        }

    # Sources.

    def arrive(self, partition: Partition) -> str:
        return self._arrives(partition, _TIMES)

    def arrive_late(self) -> str:
        """Put records that are older than those of the table, if those have a time."""
        return self._arrives(self.choices.one_of(PARTITIONS), (None, 1))

    def _arrives(self, partition: Partition, times: Sequence[int | None]) -> str:
        draw = self.choices
        # Names come in any order; they order records of the same time.
        name = f"{partition.prefix}{draw.below(10)}-{next(self._names)}.json"
        records = [
            Record(
                self._next + position,
                f"key-{draw.below(_KEYS)}",
                draw.one_of(times),
                draw.one_of(_OPERATIONS),
                name,
                position,
            )
            for position in range(2)
        ]
        self._next += len(records)
        for one in records:
            self.put[one.number] = one
            self.written.add(one.number)
        body = "".join(f'{{"a":"record-{one.number}"}}\n' for one in records)
        self.s3.seed(SOURCE, name, body.encode())
        said = ", ".join(f"{one.k} at {one.at} {one.op}" for one in records)
        return f"a producer puts {name}: {said}"

    # What others do to the table.

    def append_foreign(self) -> str:
        self.table.append_foreign([(f"foreign-{self.foreign}", None, None, -1 - self.foreign)])
        self.foreign += 1
        return "somebody else appends to the table"

    def rewrite_keys(self) -> str:
        """Compact the key table and expire its snapshots."""
        self.keys.rewrite()
        self.keys.expire()
        return "the table of keys is compacted, and its snapshots expire"

    def take_back(self) -> str:
        """Roll back one of the two tables, or drop or recreate the key table."""
        of_rows = self.choices.below(4) == 3
        table, name = (self.table, "rows") if of_rows else (self.keys, "keys")
        how = "goes back" if of_rows else self.choices.one_of(("goes back", "is dropped", "anew"))
        if how == "goes back":
            if not table.go_back():
                return f"the table of {name} cannot go back"
        else:
            said, columns = dict(table.properties), self._shapes[f"{_ROWS}__keys"].columns
            table.drop()
            if how == "anew":
                table.create()
                table.properties |= {k: v for k, v in said.items() if k.startswith("s3-")}
                columns.append(columns[-1])
        self.taken_back = f"the table of {name} {how}"
        self._seen = self._shown()
        return self.taken_back

    # Processes.

    def publisher(self) -> Process:
        run_id = f"driver-{next(self._names)}"
        at_once = self.choices.one_of((3, 1, 5))

        def work() -> object:
            catalog = self._upserts(process)
            # Releases differ in how many outputs they merge together.
            work = replace(
                self._publishing(process, run_id),
                catalog=catalog,
                counts=catalog.counts,
                commit_outputs=at_once,
            )
            return record_publish(work)

        process = Process(run_id, work, self.choices.below)
        return process

    def looker(self) -> Process:
        """Return a process without Spark that checks the merge that a driver left."""
        run_id = f"looker-{next(self._names)}"

        def work() -> object:
            client, catalog = self._client(process), self._catalog(process)
            return look_at_merge(self.settings, client, catalog, run_id)

        process = Process(run_id, work, self.choices.below)
        return process

    def _upserts(self, process: Process) -> SparkUpserts:
        ask = self._asks(process)

        def read(uri: str) -> list[dict[str, Any]]:
            bucket, _, key = uri.removeprefix("s3://").partition("/")
            body = self.s3.contents(bucket, key).get(key)
            if body is None:
                raise SparkFailed(f"{uri} is gone")
            return [self._row(self.put[number]) for number in _numbers(body)]

        engine = MemoryEngine(self._shapes, Session(read), ask, self._left_out)
        return SparkUpserts(engine, _ROWS, self._key, ADDRESS)  # type: ignore[arg-type] # no Spark

    def _catalog(
        self, process: Process, asks: Callable[[Call], Fault] | None = None
    ) -> TableCatalog:
        ask = self._asks(process, asks)
        return KeyedCatalog(MemoryCatalog(self.table, ask), MemoryCatalog(self.keys, ask))

    @staticmethod
    def _row(one: Record) -> dict[str, Any]:
        return {
            "k": one.k,
            "at": one.at,
            "op": one.op,
            "v": one.number,
            SOURCE_KEY: one.source,
            POSITION: one.position,
        }

    # What must hold.

    def outputs(self) -> list[int]:
        """Return the records of the readable outputs."""
        return [n for body in self.s3.contents(LAKE, DATA).values() for n in _numbers(body)]

    def look(self) -> None:
        found = self.table.records()
        foreign = {number for _, _, _, number in found.elements() if number < 0}
        if not self.taken_back and len(foreign) < self.foreign:
            raise Violation("what somebody else wrote is gone")
        if found and max(found.values()) > 1:
            raise Violation("a row is in the table twice")
        shown = self._shown()
        for key, seen in self._seen.items():
            now = shown.get(key)
            if now is not None and now.age < seen.age:
                raise Violation(f"{key} has record {now.number} again, and had {seen.number}")
            if now is None and not self._deleted_since(seen):
                raise Violation(f"{key} is gone, and no record deletes it behind {seen.number}")
        self._seen |= shown
        self._look_at_sources()

    def _shown(self) -> dict[str, Record]:
        """Return the row of each key.

        Raises:
            Violation: a key has two rows, or one that no producer put.
        """
        shown: dict[str, Record] = {}
        for key, at, op, number in self.table.records():
            if number < 0:
                continue
            one = self.put[number]
            if key in shown or (key, at, op) != (one.k, one.at, one.op) or op == "D":
                raise Violation(f"{key} has a row that must not be there, of record {number}")
            shown[key] = one
        return shown

    def _look_at_sources(self) -> None:
        sources, outputs = self.in_sources(), self.outputs()
        if len(set(outputs)) < len(outputs):
            raise Violation("a record is in two outputs")
        lost = self.written - sources - set(outputs)
        if lost:
            raise Violation(f"records {sorted(lost)} are neither in a source nor in an output")
        if self.taken_back:
            return
        gone = [self.put[number] for number in self.written - sources]
        for key, one in last_of_each(gone).items():
            seen = self._seen.get(key)
            if (seen is None or seen.age < one.age) and not self._deleted_since(one):
                raise Violation(f"the source of record {one.number} is gone, the table has it not")

    def _deleted_since(self, seen: Record) -> bool:
        return any(
            one.k == seen.k and one.op == "D" and one.age >= seen.age for one in self.put.values()
        )

    def _judge_delete(self, key: str, seen: Collection[int]) -> None:
        """Accept every delete: outputs keep the records, and the rows are checked on their own."""

    def must_be_the_last(self) -> None:
        """Check that the table has exactly the last record of each key.

        Raises:
            Violation: it does not.
        """
        self.look()
        wanted = {k: one for k, one in last_of_each(self.put.values()).items() if one.op != "D"}
        found = self._shown()
        if found != wanted:
            raise Violation(f"the table has {_told(found)} and must have {_told(wanted)}")

    def must_have_what_fits(self) -> None:
        """Check nothing: rows are not records, and the table is checked as a whole."""

    def must_be_at_rest(self) -> None:
        """Check the table, and that no source is left: here users remove nothing."""
        self.must_be_the_last()
        if self.in_sources():
            raise Violation(f"clean-up left {sorted(self.in_sources())}")

    def kept(self) -> object:
        return super().kept(), self.keys.records()


def _told(rows: Mapping[str, Record]) -> str:
    return ", ".join(f"{key}: {rows[key].number}" for key in sorted(rows)) or "nothing"


class _Schedule(DisturbedCommits, TableSchedule):
    TURNS = 160
    FAULT_RATES = (0.0, 0.005, 0.02, 0.06)
    world: KeyedWorld

    def __init__(
        self, world: KeyedWorld, choices: Choices, outcome: Outcome, *, tell: bool
    ) -> None:
        super().__init__(world, choices, outcome, tell=tell)
        self._is_taken_back = choices.chance(0.2)

    def _events(self) -> dict[str, Callable[[], object]]:
        world = self.world
        events = super()._events()
        # Outputs that do not fit are tested without a key.
        del events["late arrival that does not fit"], events["table takes every output"]
        events["somebody looks at the merge"] = lambda: self._start(world.looker())
        events["late, older records"] = lambda: self.tell(world.arrive_late())
        if world.taken_back:
            # After an expiry a rollback can no longer be detected: docs/tables.md.
            return {name: one for name, one in events.items() if "expired" not in name}
        if world.keys.uuid:
            events["table of keys compacted and expired"] = lambda: self.tell(world.rewrite_keys())
            if self._is_taken_back:
                events["taken back by others"] = lambda: self.tell(world.take_back())
        return events

    def _likely(self, events: Sequence[str]) -> Sequence[str]:
        seldom = "taken back by others"
        return [seldom] if seldom in events and self._choices.chance(0.3) else events

    def _others_at_the_table(self) -> Sequence[Callable[[], object]]:
        world = self.world
        if world.taken_back:
            return (self._overtake,)
        others: list[Callable[[], object]] = [*super()._others_at_the_table()]
        if world.keys.uuid:
            others.append(lambda: self.tell(world.rewrite_keys()))
            if self._is_taken_back:
                others.append(lambda: self.tell(world.take_back()))
        return others

    def _acts_of_users(self) -> dict[str, Callable[[], object]]:
        return {}

    def _judge(self, process: Process) -> None:
        ours = isinstance(process.error, SparkFailed)
        if ours or (self.world.taken_back and isinstance(process.error, IntegrityError)):
            self.tell(f"{process.name} ends: {process.error!r}")
            return
        super()._judge(process)

    def end(self) -> None:
        """Run without faults; the table must be right, or refused if it was taken back.

        Raises:
            Violation: it is neither.
        """
        self._bring_in()
        if self.world.taken_back and self._is_refused():
            return
        self.world.must_be_the_last()
        for _ in range(2):
            self.tell(self.world.arrive_late())
        super().end()

    def _is_refused(self) -> bool:
        """Return whether publishers refuse the table from now on."""
        self.tell(self.world.arrive_late())
        for partition in PARTITIONS:
            self._to_rest(partition)
        before = self.world.table.records(), self.world.keys.records()
        refused = isinstance(self._finish(self.world.publisher()).error, IntegrityError)
        if refused:
            self.outcome.faults["a table that was taken back is refused"] += 1
            if (self.world.table.records(), self.world.keys.records()) != before:
                raise Violation("a table that was taken back was changed")
        return refused


# Guards.


@contextmanager
def _merge_again() -> Iterator[None]:
    """Merge rows again, whatever number the table of rows has."""
    merge = SparkUpserts._merge

    def again(self: SparkUpserts, both: Any, *given: Any) -> None:
        merge(self, replace(both, rows=replace(both.rows, last=-1)), *given)

    with patch.object(SparkUpserts, "_merge", again):
        yield


@contextmanager
def _forget_deleted_keys() -> Iterator[None]:
    def without(table: str, changes: str, key: Any) -> str:
        made = merge_keys(table, changes, key)
        dead = " WHEN MATCHED AND s.`__deleted` THEN DELETE WHEN MATCHED THEN"
        only = " WHEN NOT MATCHED AND NOT s.`__deleted` THEN"
        made = made.replace(" WHEN MATCHED THEN", dead, 1)
        return made.replace(" WHEN NOT MATCHED THEN", only, 1)

    with patch("compactor_spark.upsert.tables.merge_keys", without):
        yield


@contextmanager
def _let_ties_fall() -> Iterator[None]:
    """Leave records of the same time without an order."""
    with patch(
        "tests.support.memory_keyed._rank",
        lambda row, key, *more: [(row[one] is not None, row[one] or 0) for one in key.order],
    ):
        yield


@contextmanager
def _keys_first() -> Iterator[None]:
    """Merge the key table before the table of rows."""
    merge = SparkUpserts._merge

    class Later:
        def __init__(self, engine: Any) -> None:
            self._engine = engine
            self._waiting: list[Any] = []

        def __getattr__(self, name: str) -> Any:
            return getattr(self._engine, name)

        def merge(self, name: str, *given: Any) -> None:
            if name == _ROWS:
                self._waiting.append((name, *given))
                return
            self._engine.merge(name, *given)
            for one in self._waiting:
                self._engine.merge(*one)

    def swapped(self: SparkUpserts, *given: Any) -> None:
        engine = self._engine
        self._engine = Later(engine)
        try:
            merge(self, *given)
        finally:
            self._engine = engine

    with patch.object(SparkUpserts, "_merge", swapped):
        yield


@contextmanager
def _believe_any_keys() -> Iterator[None]:
    """Skip the checks that keys and rows belong together and were not taken back."""
    with ExitStack() as stack:
        stack.enter_context(patch("compactor_spark.upsert.tables.fault_between", lambda *_: ""))
        stack.enter_context(patch("compactor.catalogs.keyed.fault_between", lambda *_: ""))
        stack.enter_context(patch("tests.support.memory_tables.rolled_back", lambda *_: ""))
        stack.enter_context(patch("tests.support.memory_tables.restored_before", lambda *_: ""))
        yield


@contextmanager
def _merge_whatever_was_merged_since() -> Iterator[None]:
    with patch.object(SparkUpserts, "_require_same_entries", lambda *_: None):
        yield


_BEFORE_DELETE = "look at the table before sources are deleted"

KEYED_MUTATIONS: Mapping[str, TableMutation] = {
    "condition of a merge's commit": TableMutation(
        left_out=frozenset({TableGuard.COMMIT_IF_UNCHANGED})
    ),
    "look at the number before rows are merged": TableMutation(
        left_out=frozenset({TableGuard.NUMBER}), applied=_merge_again
    ),
    "keys of what is deleted": TableMutation(applied=_forget_deleted_keys),
    "order of records of one time": TableMutation(applied=_let_ties_fall),
    "rows before keys": TableMutation(applied=_keys_first),
    "comparison of rows and keys": TableMutation(applied=_believe_any_keys),
    "look at the numbers once the keys are made": TableMutation(
        applied=_merge_whatever_was_merged_since
    ),
    _BEFORE_DELETE: TABLE_MUTATIONS[_BEFORE_DELETE],
}

#: Seeds of schedules that noticed; an outdated one only costs time.
KEYED_NOTICED: Mapping[str, int] = {
    "condition of a merge's commit": 9,
    "look at the number before rows are merged": 32,
    "keys of what is deleted": 0,
    "order of records of one time": 0,
    "rows before keys": 1,
    "comparison of rows and keys": 11,
    "look at the numbers once the keys are made": 1_663,
    _BEFORE_DELETE: 0,
}


def play_keyed(
    seed: int,
    *,
    replay: Sequence[int] | None = None,
    mutation: TableMutation = unchanged,
    tell: bool = False,
) -> Outcome:
    """Run one schedule to its end, or to the first broken promise."""
    choices = Choices(seed, replay)

    def make(outcome: Outcome) -> _Schedule:
        world = KeyedWorld(choices, mutation.without, mutation.left_out)
        return _Schedule(world, choices, outcome, tell=tell)

    with without_spark(_SCHEMA), workers_as_spark(), mutation.applied():
        return played(choices, make)


def explore_keyed(first: int, count: int, name: str = "") -> Explored:
    """Run schedules sequentially; with a mutation, stop at the first broken promise."""
    mutation = KEYED_MUTATIONS[name] if name else unchanged
    return explored(partial(play_keyed, mutation=mutation), first, count, all_of_them=not name)


def explore_many_keyed(first: int, count: int, processes: int | None = None) -> Explored:
    """Run schedules on all processors."""
    return explore_in_batches(explore_keyed, first, count, batch=_BATCH, processes=processes)


if __name__ == "__main__":
    sys.exit(command_line("tests.simulation.keyed", play_keyed, explore_many_keyed))
