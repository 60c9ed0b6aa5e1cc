"""Tables with a key, merged in memory: the product's merges without Spark.

The product's own code decides which of the two tables is merged first, with which number and after
which checks, and writes the statements. Replaced are Spark's parts: reading outputs as rows, the
last record of each key, and an engine that runs the statements by the commit rules of Iceberg and
Delta.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from unittest.mock import patch

from pyspark.sql.types import StructType

from compactor.errors import TableConflict
from compactor.settings.tables import KEYS_SUFFIX
from compactor.sinks.upserts import DELETED, ENTRY, POSITION, SOURCE_KEY, UpsertCounts, UpsertKey
from compactor_spark.upsert.engines import Seen, Token
from compactor_spark.upsert.winners import Outputs
from tests.support.memory_tables import (
    DeltaTable,
    Files,
    IcebergTable,
    TableGuard,
    commit_with_number,
    now_at,
    state_of,
)

Table = IcebergTable | DeltaTable
Row = dict[str, Any]
Ask = Callable[[str, Callable[[], object]], object]
_ARRIVED, _OF_KEY, _OUTCOME = "__upsert_arrived", "__upsert_records", "__upsert_outcome"


class SparkFailed(Exception):
    """Files that Spark should read are gone: the job fails, and the next run's job tries again."""


@dataclass
class Session:
    """Views by name, and a function that reads the rows of an output."""

    read: Callable[[str], list[Row]]
    views: dict[str, Frame] = field(default_factory=dict)

    @property
    def catalog(self) -> Session:
        return self

    def dropTempView(self, name: str) -> None:  # noqa: N802 - Spark's
        del self.views[name]


@dataclass
class Frame:
    """Rows, with the part of Spark's interface that the product uses."""

    sparkSession: Session  # noqa: N815 - Spark's
    rows: list[Row]

    def persist(self, *_: object) -> Frame:
        return self

    def unpersist(self) -> None:
        """Do nothing: nothing is cached."""

    def createTempView(self, name: str) -> None:  # noqa: N802 - Spark's
        self.sparkSession.views[name] = self


class Shape(NamedTuple):
    """One of a keyed table's two tables, and its columns."""

    table: Table
    columns: list[StructType]


@dataclass
class MemoryEngine:
    """Implements :class:`compactor_spark.upsert.engines.Engine`.

    Attributes:
        tables: tables by name, with their key tables.
        session: the session of the views.
        ask: performs each request; called with its name and a function that sends it.
        without: conditions that are left out.
    """

    tables: Mapping[str, Shape]
    session: Any
    ask: Ask = lambda _, request: request()
    without: frozenset[TableGuard] = frozenset()

    def keys_of(self, name: str) -> str:
        return f"{name}{KEYS_SUFFIX}"

    def see(self, name: str, log_id: str) -> Seen | None:
        seen = self.ask("table_load", lambda: self._see(name, log_id))
        assert seen is None or isinstance(seen, Seen)
        return seen

    def rows(self, name: str, seen: Seen) -> Frame:
        there = self.tables[name].table
        columns = self.tables[name].columns[-1].names
        try:
            found = there.records_of(_files_at(there, seen.version)).elements()
        except (IndexError, KeyError):
            raise SparkFailed(f"{name} has no version {seen.version} any more") from None
        return Frame(self.session, [dict(zip(columns, one, strict=True)) for one in found])

    def create(
        self, name: str, schema: StructType, properties: Mapping[str, str], beside: str = ""
    ) -> None:
        there, columns = self.tables[name]

        def make() -> None:
            if there.uuid:
                raise TableConflict("it is there")
            there.create()
            there.properties |= properties
            columns.append(schema)

        self.ask("table_create", make)

    def add_columns(self, name: str, added: StructType) -> None:
        raise NotImplementedError(f"{name}: {added}")

    def merge(self, name: str, seen: Seen, statement: Callable[[str], str], token: Token) -> None:
        there = self.tables[name].table
        if not there.uuid:
            raise SparkFailed(f"{name} is gone")
        if isinstance(there, IcebergTable):
            at, files = seen.version, self._merged(name, seen.version, statement)
        else:
            self._require_same(there, seen, token)
            at = now_at(there)
            if self._has(there, token):
                return
            files = self._merged(name, at, statement)

        def commit() -> None:
            on = now_at(there) if TableGuard.COMMIT_IF_UNCHANGED in self.without else at
            if not there.uuid:
                raise SparkFailed(f"{name} is gone")
            if isinstance(there, IcebergTable):
                self._require_seen(there, seen, token)
            elif self._has(there, token):
                return
            commit_with_number(there, on, files, token.log_id, token.number)

        self.ask("table_commit", commit)

    def _see(self, name: str, log_id: str) -> Seen | None:
        there, columns = self.tables[name]
        state = state_of(there, log_id)
        if state is None:
            return None
        at = now_at(there)
        said = dict(state.properties)
        return Seen(state.uuid, state.location, state.last, at, columns[-1], said, state.fault)

    def _merged(self, name: str, at: int | None, statement: Callable[[str], str]) -> Files:
        """Return the table's files after the statement, before they are committed."""
        there, columns = self.tables[name]

        def merge() -> Files:
            if not there.uuid:
                raise SparkFailed(f"{name} is gone")
            before = self.rows(name, replace(_NOTHING, version=at)).rows
            after = carry_out(statement(name), before, self.session.views, columns[-1].names)
            return Files(own=frozenset({there.written(after)}))

        made = self.ask("table_merge", merge)
        assert isinstance(made, Files)
        return made

    def _has(self, table: DeltaTable, token: Token) -> bool:
        """Return whether Delta skips this transaction because it has its number."""
        said, _ = table.transactions.get(token.log_id, (0, 0))
        return TableGuard.NUMBER not in self.without and said >= token.number

    def _require_same(self, table: DeltaTable, seen: Seen, token: Token) -> None:
        state = state_of(table, token.log_id)
        if state is None or state.fault or state.uuid != seen.uuid:
            raise TableConflict("it was restored, or made anew")
        if TableGuard.NUMBER not in self.without and state.last != seen.last:
            raise TableConflict("it was given other entries")

    def _require_seen(self, table: IcebergTable, seen: Seen, token: Token) -> None:
        if table.uuid != seen.uuid:
            raise TableConflict("it is another table")
        last = int(table.properties.get(f"{token.log_id}.last", "0"))
        if TableGuard.NUMBER not in self.without and last != seen.last:
            raise TableConflict("it was given other entries during the merge")


_NOTHING = Seen("", "", 0, None, StructType([]), {}, "")


def _files_at(table: Table, at: int | None) -> Files:
    if at is None:
        return Files()
    return table.snapshots[at].files if isinstance(table, IcebergTable) else table.versions[at]


# Statements.

_CLAUSE = re.compile(
    r"(NOT )?MATCHED(?: AND (NOT )?s\.`(\w+)`)?"
    r" THEN (?:(DELETE)|UPDATE SET (.*)|INSERT \((.*)\) VALUES \((.*)\))"
)
_SAME = re.compile(r"t\.`(\w+)` <=> s\.`(\w+)`")
_SET = re.compile(r"t\.`(\w+)` = (?:s\.`(\w+)`|NULL)")


class _Clause(NamedTuple):
    matched: bool
    condition: str
    wanted: bool
    deletes: bool
    values: Mapping[str, str]

    def applies(self, source: Row, *, matched: bool) -> bool:
        if matched != self.matched:
            return False
        return not self.condition or bool(source[self.condition]) == self.wanted


def carry_out(
    statement: str, before: Sequence[Row], views: Mapping[str, Frame], columns: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return the rows of a table after a MERGE of the product.

    Raises:
        AssertionError: the product writes no such statement, or two rows match one.
    """
    head, *clauses = statement.split(" WHEN ")
    view = re.fullmatch(r"MERGE INTO \S+ t USING (\S+) s ON (.*)", head)
    assert view is not None, statement
    names = _SAME.findall(view[2])
    parsed = [_clause(one) for one in clauses]
    rows = {tuple(row[name] for name, _ in names): row for row in before}
    assert len(rows) == len(before), "a key has two rows"
    sources = views[view[1]].rows
    places = [tuple(source[name] for _, name in names) for source in sources]
    assert len(set(places)) == len(places), "two rows of the source match one of the table"
    for place, source in zip(places, sources, strict=True):
        matched = place in rows
        chosen = next((one for one in parsed if one.applies(source, matched=matched)), None)
        if chosen is None:
            continue
        if chosen.deletes:
            del rows[place]
            continue
        given = {name: source[value] if value else None for name, value in chosen.values.items()}
        rows[place] = {**dict.fromkeys(columns), **rows.get(place, {}), **given}
    return [tuple(row[name] for name in columns) for row in rows.values()]


def _clause(text: str) -> _Clause:
    match = _CLAUSE.fullmatch(text)
    assert match is not None, text
    negated, unwanted, condition, deletes, pairs, names, given = match.groups()
    values = dict(_SET.findall(pairs)) if pairs else {}
    if names:
        sources = [one.removeprefix("s.").strip("`") for one in given.split(", ")]
        found = zip(names.split(", "), sources, strict=True)
        values = {name.strip("`"): "" if one == "NULL" else one for name, one in found}
    return _Clause(not negated, condition or "", not unwanted, bool(deletes), values)


# Replacements of Spark's jobs.


class _Winners:
    """Replaces :mod:`compactor_spark.upsert.winners`."""

    @staticmethod
    def read_records(session: Session, outputs: Outputs, wanted: StructType) -> Frame:
        del wanted
        rows = [
            {**row, _ARRIVED: number}
            for number, uri in enumerate(outputs.uris)
            for row in session.read(uri)
        ]
        return Frame(session, rows)

    @staticmethod
    def winners(records: Frame, key: UpsertKey, number: int) -> Frame:
        best: dict[tuple[Any, ...], Row] = {}
        for one in records.rows:
            ordered = {
                alias: one[name] for name, alias in zip(key.order_by, key.order, strict=True)
            }
            deleted = any(str(one[name]) in values for name, values in key.delete_when.items())
            row = {**one, **ordered, DELETED: deleted, ENTRY: number, _OF_KEY: 1}
            place = tuple(one[name] for name in key.columns)
            known = best.get(place)
            if known is not None:
                row[_OF_KEY] = known[_OF_KEY] = known[_OF_KEY] + 1
            if known is None or _rank(known, key, _ARRIVED) < _rank(row, key, _ARRIVED):
                best[place] = row
        return Frame(records.sparkSession, list(best.values()))

    @staticmethod
    def decide(found: Frame, known: Frame, key: UpsertKey) -> Frame:
        there = {tuple(row[name] for name in key.columns): row for row in known.rows}
        decided = []
        for row in found.rows:
            other = there.get(tuple(row[name] for name in key.columns))
            if other is not None and _rank(row, key) < _rank(other, key):
                outcome = "stale"
            elif row[DELETED]:
                outcome = "deleted"
            else:
                outcome = "inserted" if other is None or other[DELETED] else "updated"
            decided.append({**row, _OUTCOME: outcome})
        return Frame(found.sparkSession, decided)

    @staticmethod
    def changes(decided: Frame) -> Frame:
        kept = [row for row in decided.rows if row[_OUTCOME] != "stale"]
        return Frame(decided.sparkSession, kept)

    @staticmethod
    def count(decided: Frame) -> UpsertCounts:
        counts = UpsertCounts()
        for row in decided.rows:
            setattr(counts, row[_OUTCOME], getattr(counts, row[_OUTCOME]) + 1)
            counts.records += row[_OF_KEY]
            counts.superseded += row[_OF_KEY] - 1
        return counts


def _rank(row: Row, key: UpsertKey, *more: str) -> list[tuple[bool, Any]]:
    """Return a row's sort key, in which null is the smallest value."""
    values = [row[name] for name in (*key.rank, *more)]
    return [(value is not None, 0 if value is None else value) for value in values]


@contextmanager
def without_spark(schema: StructType) -> Iterator[None]:
    """Make the product merge outputs with this schema without Spark within the block.

    Args:
        schema: the schema of all outputs, with source and position.
    """
    assert {SOURCE_KEY, POSITION} <= set(schema.names)

    def find_outputs(session: object, uris: Sequence[str], rows: int | None) -> Outputs:
        del session
        return Outputs(uris, [(schema, uris)], rows)

    with (
        patch("compactor_spark.upsert.tables.winners", _Winners),
        patch("compactor_spark.upsert.tables.find_outputs", find_outputs),
    ):
        yield
