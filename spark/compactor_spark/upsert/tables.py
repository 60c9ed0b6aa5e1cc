"""The table catalog for tables whose rows have a key, implemented with Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    MapType,
    StructField,
    StructType,
)

from compactor.errors import IntegrityError, InvalidInput, TableConflict
from compactor.sinks.table_catalog import Holdings, TableContents, TableFile, TableState
from compactor.sinks.upserts import (
    DELETED,
    ENTRY,
    KEYS_OF,
    POSITION,
    SOURCE_KEY,
    UpsertCounts,
    UpsertKey,
    fault_between,
    merge_keys,
    merge_rows,
)
from compactor_spark.upsert import winners
from compactor_spark.upsert.engines import PREFIX, Engine, Seen, Token
from compactor_spark.upsert.schema import SUPERSET_ACCEPTED, SchemaClash, nullable, widened
from compactor_spark.upsert.winners import Outputs, find_outputs

_RANKED_BY = f"{PREFIX}.ranked-by"
_FIELDS = "upsert_key, order_by and delete_when"


@dataclass(frozen=True, slots=True)
class _Both:
    """The states of the table of rows and the table of keys."""

    log_id: str
    rows: Seen
    keys: Seen | None

    @property
    def fault(self) -> str:
        keys = self.keys
        of = "" if keys is None else keys.properties.get(KEYS_OF, "")
        last = None if keys is None else keys.last
        between = fault_between(self.rows.last, last, of, self.rows.uuid)
        return between or self.rows.fault or (keys.fault if keys is not None else "")


class SparkUpserts:
    """Implements :class:`compactor.sinks.table_catalog.TableCatalog` for tables with a key.

    The last entry of a table is that of its table of keys, which is merged last.

    Args:
        engine: for the table's format.
        name: of the table in the engine.
        key: the columns that identify and rank records.
        address: of the table, as the run's input names it.
        uris: returns URIs of outputs for Spark; by default the outputs' own.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        key: UpsertKey,
        address: str,
        uris: Callable[[Sequence[TableFile]], Sequence[str]] | None = None,
    ) -> None:
        self.counts = UpsertCounts()
        self._engine = engine
        self._name = name
        self._keys_name = engine.keys_of(name)
        self._key = key
        self._address = address
        self._uris = uris or (lambda files: [file.uri for file in files])

    @property
    def address(self) -> str:
        """See the port."""
        return self._address

    def load(self, log_id: str) -> TableState | None:
        """See the port.

        Raises:
            InvalidInput: the table of keys was created for another key, or another order.
        """
        both = self._see(log_id)
        if both is None:
            return None
        self._require_same_key(both)
        return TableState(
            uuid=both.rows.uuid,
            location=both.rows.location,
            last=both.keys.last if both.keys is not None else 0,
            version=str(both.rows.version),
            fault=both.fault,
            handle=both,
            shape=both.rows.schema.json(),
        )

    def contents(self, table: TableState) -> TableContents:
        """See the port; always raises, as the table's files were written by merges."""
        raise IntegrityError(
            f"{self._address} has one row of each key, so no file of it proves an output"
        )

    def create(self, files: Sequence[TableFile]) -> None:
        """See the port."""
        schema = self._checked(self._outputs(files)).schema
        self._engine.create(self._name, _of_rows(schema), {})

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """See the port; if something does not fit, one job per footer finds out what."""
        both = _both(table) if table is not None else None
        try:
            self._require_fit(both, self._outputs(files), evolve=evolve)
        except InvalidInput:
            return self._each_unfit(both, files, evolve=evolve)
        return {}

    def _each_unfit(
        self, both: _Both | None, files: Sequence[TableFile], *, evolve: bool
    ) -> dict[TableFile, str]:
        found: dict[TableFile, str] = {}
        taken: list[tuple[StructType, Sequence[str]]] = []
        for one in files:
            # Until there is a table, each output is checked alone: a clash between two outputs is
            # no reason to drop one of them.
            more = [*(taken if both is not None else ()), *self._outputs([one]).alike]
            try:
                self._require_fit(both, Outputs((), more, None), evolve=evolve)
            except InvalidInput as error:
                found[one] = str(error)
            else:
                taken = more
        return found

    def _require_fit(self, both: _Both | None, outputs: Outputs, *, evolve: bool) -> None:
        if both is None:
            self._checked(outputs)
            return
        added = self._added(both, self._checked(outputs, both.rows.schema.names).schema)
        if added and not evolve:
            accepted = 'a column of the table, or schema_evolution "add_columns"'
            raise InvalidInput(
                f"column {added[0].name}", added[0].dataType.simpleString(), accepted
            )

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        """See the port; the files are those of all entries after ``table.last``."""
        both = _both(table)
        if both.fault:
            raise IntegrityError(f"{self._address}: {both.fault}")
        outputs = self._checked(self._outputs(files), both.rows.schema.names)
        both = self._prepared(both, outputs.schema, evolve=evolve)
        assert both.keys is not None  # noqa: S101 - they were made where they were missing
        token = Token(both.log_id, number)
        with self._decided(both, both.keys, outputs, number) as decided:
            counts = winners.count(decided)
            if outputs.rows is not None and counts.records != outputs.rows:
                raise IntegrityError(
                    f"{len(files):,} outputs have {counts.records:,} records, not the"
                    f" {outputs.rows:,} of their commits"
                )
            self._merge(both, decided, outputs.schema, token)
        self.counts.add(counts)
        return str(number)

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        """See the port."""
        accepted = "a table without upsert_key: rows that are merged do not show their output"
        raise InvalidInput("table", self._address, accepted)

    def _merge(self, both: _Both, decided: DataFrame, given: StructType, token: Token) -> None:
        """Merge into both tables, rows first: the next merge relies on the table of keys."""
        assert both.keys is not None  # noqa: S101 - see above
        key = self._key
        with _view(winners.changes(decided)) as view:
            if token.number > both.rows.last:
                columns = both.rows.schema.names

                def rows(target: str) -> str:
                    return merge_rows(target, view, key, columns, given.names)

                self._engine.merge(self._name, both.rows, rows, token)

            def keys(target: str) -> str:
                return merge_keys(target, view, key)

            self._engine.merge(self._keys_name, both.keys, keys, token)

    @contextmanager
    def _decided(
        self, both: _Both, keys: Seen, outputs: Outputs, number: int
    ) -> Iterator[DataFrame]:
        engine = self._engine
        wanted = _with_types_of(outputs.schema, both.rows.schema)
        records = winners.read_records(engine.session, outputs, wanted)
        best = winners.winners(records, self._key, number)
        known = engine.rows(self._keys_name, keys)
        # Used three times: by the count and by two merges.
        decided = winners.decide(best, known, self._key).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield decided
        finally:
            decided.unpersist()

    def _see(self, log_id: str) -> _Both | None:
        # Keys first: a merge between the two reads makes keys lag rows, which is safe.
        keys = self._engine.see(self._keys_name, log_id)
        rows = self._engine.see(self._name, log_id)
        if keys is None and rows is not None and rows.last:
            # The very first merge may have happened between the two reads.
            keys = self._engine.see(self._keys_name, log_id)
            rows = self._engine.see(self._name, log_id)
        return None if rows is None else _Both(log_id, rows, keys)

    def _require_same_key(self, both: _Both) -> None:
        said = None if both.keys is None else both.keys.properties.get(_RANKED_BY)
        if said is not None and said != self._ranked_by:
            accepted = f"{said}, as {self._keys_name} has them; or another table"
            raise InvalidInput(_FIELDS, self._ranked_by, accepted)

    @property
    def _ranked_by(self) -> str:
        return json.dumps(self._key.fields, ensure_ascii=False, sort_keys=True)

    def _prepared(self, both: _Both, given: StructType, *, evolve: bool) -> _Both:
        """Add the columns and create the table of keys that the merges need, if missing."""
        added = self._added(both, given)
        if added:
            if not evolve:
                raise InvalidInput("column", added[0].name, "a column of the table")
            self._engine.add_columns(self._name, StructType(added))
        if both.keys is None:
            properties = {KEYS_OF: both.rows.uuid, _RANKED_BY: self._ranked_by}
            schema = self._of_keys(_with_types_of(given, both.rows.schema))
            self._engine.create(self._keys_name, schema, properties, both.rows.location)
        if added or both.keys is None:
            seen = self._see(both.log_id)
            if seen is None or seen.keys is None or seen.fault:
                gone = f"{self._name if seen is None else self._keys_name} is gone"
                fault = seen.fault if seen is not None else ""
                raise IntegrityError(f"{self._address}: {fault or gone}")
            self._require_same_entries(both, seen)
            return replace(seen, rows=replace(seen.rows, version=both.rows.version))
        return both

    def _require_same_entries(self, both: _Both, seen: _Both) -> None:
        """Check that no other driver merged since: a merge would set the entry number back."""
        before, after = _numbers_of(both), _numbers_of(seen)
        if before != after:
            raise TableConflict(f"{self._address} was given other entries meanwhile")

    def _of_keys(self, given: StructType) -> StructType:
        key = self._key
        fields = [StructField(name, given[name].dataType) for name in key.columns]
        fields += [
            StructField(alias, given[name].dataType)
            for name, alias in zip(key.order_by, key.order, strict=True)
        ]
        fields += [given[SOURCE_KEY], given[POSITION]]
        return StructType(
            [*fields, StructField(DELETED, BooleanType()), StructField(ENTRY, LongType())]
        )

    def _outputs(self, files: Sequence[TableFile]) -> Outputs:
        counted = [file.rows for file in files]
        total = sum(rows for rows in counted if rows is not None)
        rows = None if None in counted else total
        return find_outputs(self._engine.session, self._uris(files), rows)

    def _checked(self, outputs: Outputs, table: Sequence[str] = ()) -> Outputs:
        """Return the outputs, after checking that they have the columns that upserts need.

        Args:
            outputs: by their footers.
            table: names of the table's columns.

        Raises:
            InvalidInput: columns are missing, reserved, or of an unsuitable type; names them.
        """
        names = outputs.schema.names
        missing = self._key.missing(names, table)
        if missing:
            accepted = f"columns of the outputs; missing: {', '.join(missing)}"
            raise InvalidInput(_FIELDS, [one for one in self._key.fields.values() if one], accepted)
        own = self._key.own(names)
        if own:
            raise InvalidInput("column", own[0], "another name: this one is the table of keys'")
        for name in (*self._key.columns, *self._key.order_by, *self._key.delete_when):
            kind = outputs.schema[name].dataType if name in names else None
            if isinstance(kind, ArrayType | MapType | StructType):
                accepted = "a column of numbers, text, times or truth values in a key and its order"
                raise InvalidInput(f"column {name}", kind.simpleString(), accepted)
        return outputs

    def _added(self, both: _Both, given: StructType) -> list[StructField]:
        """Return the columns that the table lacks.

        Raises:
            InvalidInput: a column of the table has a type that cannot hold these values.
        """
        known = {one.name: one.dataType for one in nullable(both.rows.schema).fields}
        for one in _of_rows(given).fields:
            kind = known.get(one.name)
            found = one.dataType.simpleString()
            if kind is None:
                continue
            try:
                fits = widened(kind, one.dataType, one.name) == kind
            except SchemaClash:
                fits = False
            if not fits:
                accepted = f"{kind.simpleString()}, as the table has it; {SUPERSET_ACCEPTED}"
                raise InvalidInput(f"column {one.name}", found, accepted)
        return [one for one in _of_rows(given).fields if one.name not in known]


def _numbers_of(both: _Both) -> tuple[int, int]:
    return both.rows.last, both.keys.last if both.keys is not None else 0


def _both(table: TableState) -> _Both:
    if not isinstance(table.handle, _Both):
        raise TypeError("a state that this catalog has not loaded")
    return table.handle


def _of_rows(schema: StructType) -> StructType:
    return StructType([one for one in schema.fields if one.name not in {SOURCE_KEY, POSITION}])


def _with_types_of(given: StructType, table: StructType) -> StructType:
    """Return the given columns, with the table's types for those that it has."""
    known = {one.name: one for one in nullable(table).fields}
    return StructType([known.get(one.name, one) for one in given.fields])


@contextmanager
def _view(frame: DataFrame) -> Iterator[str]:
    """Register a frame as a temporary view, and yield its name."""
    name = f"compactor_{uuid.uuid4().hex}"
    frame.createTempView(name)
    try:
        yield name
    finally:
        try:
            frame.sparkSession.catalog.dropTempView(name)
        except PySparkException:
            # The view ends with its session.
            return
