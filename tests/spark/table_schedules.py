"""Schedules with the real Iceberg and the real Delta, on Spark: who publishes dies, others rewrite.

A schedule is drawn from a seed: outputs are committed, a publisher brings them in and dies before
or after any of its requests, or never hears the answer to its commit of the table; while it is
about to commit, another publisher, or Spark, is first. Spark appends, rewrites the data files
(``rewrite_data_files``, ``OPTIMIZE``), deletes rows (of Iceberg also by delete files), overwrites
the table, and snapshots expire (Iceberg's own call, ``VACUUM``). Rows are counted by pyiceberg, or
delta-rs, after each step, and what our catalog says of each output is compared with them: an output
is proven only while all its rows are there, and always while no rows were removed or took the
history away.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from compactor.catalogs.delta import DeltaCatalog
from compactor.catalogs.iceberg import IcebergCatalog
from compactor.clock import NoDeadline, SystemClock
from compactor.errors import TransientStoreError
from compactor.log.entries import Output
from compactor.log.identity import read_identity
from compactor.model import Partition
from compactor.sinks.table_catalog import TableCatalog, TableFile, TableState
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.table_formats.file_io import properties_of
from tests.support.directory_store import DirectoryStore
from tests.support.examples import settings as settings_of
from tests.support.memory_store import Call, Crashed
from tests.support.parquet_outputs import commit_rows
from tests.support.table_engines import table_session

ICEBERG, DELTA = "iceberg", "delta"
_PARTITIONS = tuple(Partition("source", f"logs/{name}/", f"{name}/") for name in "ab")
_STEPS = (4, 7)
_ROWS = 3
# Of the requests of a publisher: it has some thirty.
_LAST_REQUEST = 30
# The year 2100, in milliseconds.
_FAR = 4_102_444_800_000
_OVERLOADED = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


@dataclass
class Faults:
    """What happens to the next commit of the table.

    Attributes:
        meanwhile: done when a publisher is about to commit, once.
        dies: "before" or "after" the commit, or "unheard" where its answer is lost.
    """

    meanwhile: Callable[[], None] | None = None
    dies: str = ""


class _Disturbed:
    """A catalog whose commits are disturbed; all else is the real one."""

    def __init__(self, real: TableCatalog, faults: Faults) -> None:
        self._real = real
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        faults = self._faults
        meanwhile, faults.meanwhile = faults.meanwhile, None
        dies, faults.dies = faults.dies, ""
        if meanwhile is not None:
            meanwhile()
        if dies == "before":
            raise Crashed("before the table's commit")
        done = self._real.append(table, files, number, evolve=evolve)
        if dies == "after":
            raise Crashed("after the table's commit")
        if dies == "unheard":
            raise TransientStoreError("no answer to the table's commit")
        return done


class Lake:
    """A table of one kind, the store of its outputs, and Spark beside them.

    Args:
        kind: ``iceberg`` or ``delta``.
        session: of :func:`session_of_lakes`.
        directory: of that session.
        name: of its bucket.
    """

    def __init__(self, kind: str, session: SparkSession, directory: Path, name: str) -> None:
        self.kind = kind
        self.faults = Faults()
        self.store = DirectoryStore(name, directory / name)
        self._session = session
        self._directory = directory
        self._name = name.replace("-", "_")
        destination, table = {
            ICEBERG: ("compacted/", f"sql:sqlite:///{directory}/catalog.db#db.{self._name}"),
            DELTA: ("events/_compacted/", f"delta:s3://{name}/events/"),
        }[kind]
        self.settings = settings_of(s3_destination_uri=f"s3://{name}/{destination}", table=table)

    def catalog(self) -> TableCatalog:
        """The real catalog, with commits that are disturbed as ``faults`` says."""
        return cast(TableCatalog, _Disturbed(self._real(), self.faults))

    def _real(self) -> TableCatalog:
        address = self.settings.table_address
        assert address is not None
        if self.kind == DELTA:
            made = DeltaCatalog(address, self.settings, self.store, options={})
            there = SimpleNamespace(uri=self._delta_uri)
            place = made._location
            there.bucket, there.prefix = place.bucket, place.prefix
            made._location = cast(Any, there)
            return made
        uri = f"sqlite:///{self._directory}/catalog.db"
        catalog = SqlCatalog("lake", uri=uri, **properties_of(self.store))
        return IcebergCatalog(address, self.settings, self.store, catalog)

    @property
    def _delta_uri(self) -> str:
        return f"{self.store.directory.as_uri()}/events/"

    def state(self) -> TableState | None:
        """The table, as our catalog reads it."""
        identity = read_identity(self.settings, self.store)
        return self._real().load(identity.log_id) if identity is not None else None

    def rows(self) -> Counter[int]:
        """What pyiceberg or delta-rs finds, and nothing of Spark."""
        state = self.state()
        if state is None:
            return Counter()
        handle: Any = state.handle
        if self.kind == DELTA:
            from deltalake import QueryBuilder

            found = pa.table(QueryBuilder().register("t", handle).execute("select id from t"))
        else:
            found = handle.scan(selected_fields=("id",)).to_arrow()
        return Counter(found.column("id").to_pylist())

    # What others do, by Spark.

    @property
    def _table(self) -> str:
        return f"delta.`{self._delta_uri}`" if self.kind == DELTA else f"lake.db.{self._name}"

    def append_foreign(self, numbers: range) -> None:
        """Somebody else's rows."""
        frame = self._session.range(numbers.start, numbers.stop).coalesce(1)
        if self.kind == DELTA:
            frame.write.format("delta").mode("append").save(self._delta_uri)
        else:
            frame.writeTo(self._table).append()

    def delete(self, number: int, *, in_place: bool) -> None:
        """One row; of Iceberg by a delete file, or with a new data file."""
        if self.kind == ICEBERG:
            mode = "merge-on-read" if in_place else "copy-on-write"
            self._session.sql(
                f"ALTER TABLE {self._table} SET TBLPROPERTIES ('write.delete.mode' = '{mode}')"
            )
        self._session.sql(f"DELETE FROM {self._table} WHERE id = {number}")  # noqa: S608 - names alone

    def overwrite(self, numbers: range) -> None:
        """These rows instead of all others."""
        frame = self._session.range(numbers.start, numbers.stop).coalesce(1)
        if self.kind == DELTA:
            frame.write.format("delta").mode("overwrite").save(self._delta_uri)
        else:
            frame.createOrReplaceTempView("given")
            self._session.sql(f"INSERT OVERWRITE {self._table} TABLE given")

    def fault_of(self, output: Output) -> str:
        """Why our catalog does not find all rows of an output in the table."""
        catalog = self._real()
        identity = read_identity(self.settings, self.store)
        assert identity is not None
        state = catalog.load(identity.log_id)
        if state is None:
            return "no table"
        file = TableFile(output.bucket, output.key, output.size, output.records)
        return catalog.contents(state).fault_of(file)

    def rewrite(self) -> None:
        """All rows into new files."""
        self._session.sql(
            f"OPTIMIZE {self._table}"
            if self.kind == DELTA
            else f"CALL lake.system.rewrite_data_files(table => 'db.{self._name}',"
            " options => map('rewrite-all', 'true'))"
        )

    def expire(self) -> None:
        """Only what the table has now stays, and files of no snapshot go."""
        if self.kind == DELTA:
            self._session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
            self._session.sql(f"VACUUM {self._table} RETAIN 0 HOURS")
            return
        # What the procedure of this name does takes eight jobs of Spark, and as many seconds.
        jvm: Any = self._session._jvm
        util = jvm.org.apache.iceberg.spark.Spark3Util
        table = util.loadIcebergTable(self._session._jsparkSession, self._table)
        table.expireSnapshots().expireOlderThan(_FAR).retainLast(1).commit()


@dataclass
class Played:
    """What a schedule came to.

    Attributes:
        happened: by what it was.
        broken: the promise; empty when all held.
    """

    happened: Counter[str] = field(default_factory=Counter)
    broken: str = ""


class TableSchedule:
    """One schedule, drawn from a seed."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake = lake
        self.played = Played()
        self._draw = random.Random(seed)
        self._next = 0
        self._wanted: Counter[int] = Counter()
        self._outputs: list[tuple[Output, set[int]]] = []
        self._is_whole = True
        self._publishers = 0

    def play(self) -> Played:
        """All of it, and the end without faults."""
        try:
            self._compact()
            self._publish()
            for _ in range(self._draw.randint(*_STEPS)):
                self._step()
                self._look()
            self._end()
        except AssertionError as broken:
            self.played.broken = str(broken) or repr(broken)
        return self.played

    def _step(self) -> None:
        draw = self._draw
        acts = [self._compact, self._publish_disturbed, self._append, self._rewrite, self._expire]
        users = [self._delete, self._overwrite]
        draw.choices([*acts, *users], [3, 5, 1, 2, 1, 1.5, 0.5])[0]()

    def _compact(self) -> None:
        """A worker commits an output."""
        self._count("output committed")
        numbers = range(self._next, self._next + _ROWS)
        self._next += _ROWS
        self._wanted.update(numbers)
        rows = pa.table({"id": pa.array(numbers, pa.int64())})
        partition = self._draw.choice(_PARTITIONS)
        commit = commit_rows(self.lake.store, self.lake.settings, partition, rows)
        assert commit.output is not None
        self._outputs.append((commit.output, set(numbers)))

    def _delete(self) -> None:
        found = sorted(self.lake.rows())
        if not found:
            return
        self._count("row deleted by a user")
        number, in_place = self._draw.choice(found), self._draw.random() < 0.5
        self.lake.delete(number, in_place=in_place)
        del self._wanted[number]
        self._is_whole = False

    def _overwrite(self) -> None:
        self._count("table overwritten by a user")
        gone = self.lake.rows()
        first = 1_000_000 + self._next
        numbers = range(first, first + max(len(gone), 1))
        self._next += len(numbers)
        self.lake.overwrite(numbers)
        self._wanted -= gone
        self._wanted.update(numbers)
        self._is_whole = False

    def _publish_disturbed(self) -> None:
        draw, lake = self._draw, self.lake
        if draw.random() < 0.7:
            self._compact()
        kind = draw.choice(["request", "before", "after", "unheard", "meanwhile", "meanwhile"])
        if kind == "request":
            self._die_at(draw.randint(1, _LAST_REQUEST), draw.choice(["before", "after"]))
        elif kind == "meanwhile":
            others = [self._append, self._rewrite, self._rewrite_and_expire, self._publish]
            lake.faults.meanwhile = draw.choice(others)
            lake.faults.dies = draw.choice(["", "", "after", "unheard"])
        else:
            lake.faults.dies = kind
        self._count(f"publisher disturbed: {kind}")
        self._publish()
        lake.store.quiet()
        self.lake.faults = Faults()

    def _die_at(self, last: int, when: str) -> None:
        """The publisher dies before or after this request, and asks for nothing any more."""
        made = 0

        def before(call: Call) -> None:
            nonlocal made
            made += 1
            if made > last or (made == last and when == "before"):
                raise Crashed(f"{when} {call}")

        def after(call: Call) -> None:
            if made == last and when == "after":
                raise Crashed(f"{when} {call}")

        self.lake.store.hooks.before.append(before)
        self.lake.store.hooks.after.append(after)

    def _publish(self) -> None:
        """One publisher, to its end or its death."""
        self._publishers += 1
        lake = self.lake
        work = Publishing(
            lake.settings,
            lake.store,
            lake.catalog(),
            SystemClock(),
            NoDeadline(),
            f"publisher-{self._publishers}",
            entry_outputs=2,
            commit_outputs=3,
            pause=lambda _: None,
        )
        with suppress(Crashed, TransientStoreError):
            record_publish(work)
            return
        self._count("publisher died")

    def _append(self) -> None:
        self._count("others appended")
        first = 1_000_000 + self._next
        numbers = range(first, first + _ROWS)
        self._next += _ROWS
        self.lake.append_foreign(numbers)
        self._wanted.update(numbers)

    def _rewrite(self) -> None:
        self._count("data files rewritten")
        self.lake.rewrite()

    def _expire(self) -> None:
        self._count("snapshots expired")
        self.lake.expire()
        # Delta's log stays.
        self._is_whole &= self.lake.kind == DELTA

    def _rewrite_and_expire(self) -> None:
        self._rewrite()
        self._expire()

    def _count(self, what: str) -> None:
        self.played.happened[what] += 1

    def _look(self) -> None:
        found = self.lake.rows()
        twice = sorted(number for number, many in found.items() if many > 1)
        assert not twice, f"rows {twice} are in the table twice"
        assert found <= self._wanted, f"rows {sorted(found - self._wanted)} are nobody's"
        self._prove(set(found))
        foreign = {number for number in self._wanted if number >= 1_000_000}
        assert foreign <= set(found), f"rows {sorted(foreign - set(found))} of others are gone"

    def _prove(self, found: set[int]) -> None:
        for output, numbers in self._outputs:
            fault = self.lake.fault_of(output)
            if not fault:
                assert numbers <= found, f"{output.key} is proven, and {numbers - found} are gone"
                self._count("output proven")
            elif self._is_whole:
                assert not numbers & found, f"{output.key} is in the table: {fault}"

    def _end(self) -> None:
        self._publish()
        found = self.lake.rows()
        assert found == self._wanted, f"rows {sorted(self._wanted - found)} never came in"
        state = self.lake.state()
        self._rewrite_and_expire()
        assert self.lake.rows() == self._wanted, "a rewrite lost rows"
        before = self.lake.state()
        self._publish()
        after = self.lake.state()
        assert before is not None
        assert after is not None
        assert state is not None
        assert (after.last, after.version) == (state.last, before.version), "a publisher did more"


def session_of_lakes(session: SparkSession, directory: Path, seeds: range) -> SparkSession:
    """A session with an empty catalog, to which the bucket of each schedule is a directory.

    Args:
        session: started with the settings of :mod:`tests.support.table_engines`.
        directory: of all these schedules, and empty.
        seeds: of the schedules.
    """
    # Iceberg reads these when it makes its catalog.
    hadoop = session._jsc.hadoopConfiguration()
    hadoop.set("fs.s3.impl", _OVERLOADED)
    for seed in seeds:
        name = _bucket(ICEBERG, seed)
        hadoop.set(f"fs.viewfs.mounttable.{name}.linkFallback", (directory / name).as_uri())
    return table_session(session, directory)


def play_table_schedule(kind: str, session: SparkSession, directory: Path, seed: int) -> Played:
    """Play one schedule; the session and the directory are those of :func:`session_of_lakes`."""
    return TableSchedule(Lake(kind, session, directory, _bucket(kind, seed)), seed).play()


def _bucket(kind: str, seed: int) -> str:
    return f"{kind}-{seed}"
