"""Converts blocks of records to the rows of one output, and keeps what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Self

import pyarrow as pa

from compactor.errors import InvalidInput
from compactor.model import SourceObject
from compactor.rows.csv_rows import CsvRows
from compactor.rows.dead_letters import DeadLetterRecords
from compactor.rows.infer import Inferred
from compactor.rows.json_rows import JsonRows
from compactor.rows.output import RowsOutput
from compactor.rows.records import BLOCK_BYTES, JSON, Block, Kind
from compactor.rows.schema import leaves
from compactor.sinks.upserts import POSITION, SOURCE_KEY

# Most values of one conversion, as each takes memory even if it is null.
_MOST_VALUES = 4 << 20
_ORIGINS = (pa.field(SOURCE_KEY, pa.string()), pa.field(POSITION, pa.int64()))


def with_origin_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a schema, and after them those that name each row's origin.

    Of two records of a key the later one wins, and these columns break ties. They depend only on
    the source: a retry, another group or another version of this program gives a record the same
    values.

    Raises:
        InvalidInput: the schema already has a column of one of these names.
    """
    own = {one.name for one in _ORIGINS}
    taken = [name for name in schema.names if name.lower() in own]
    if taken:
        accepted = "another name with upsert_key, for which outputs get such columns themselves"
        raise InvalidInput("column", taken[0], accepted)
    return pa.schema([*schema, *_ORIGINS])


class Origin(NamedTuple):
    """The source of records.

    Attributes:
        uri: of the source, for dead-letter records.
        key: of the source.
    """

    uri: str
    key: str

    @classmethod
    def of(cls, source: SourceObject) -> Self:
        """Return the origin of a source's records."""
        return cls(f"s3://{source.bucket}/{source.key}", source.key)


class RowSink:
    """The rows and dead-letter records of one output.

    Args:
        schema: columns of the records.
        output: takes the rows.
        dead_letters: takes the records that do not fit.
        origins: add the columns of :func:`with_origin_columns`.
        exact: whether the columns were inferred (see :mod:`compactor.rows.values`).

    Attributes:
        counted: number of records added.
        unknown: gathers records with a field that no column has.
    """

    def __init__(
        self,
        schema: pa.Schema,
        output: RowsOutput,
        dead_letters: DeadLetterRecords,
        *,
        origins: bool,
        exact: bool,
    ) -> None:
        self.counted = 0
        self.unknown = Inferred()
        self.has_unknown = False
        self._schema = schema
        self._output = output
        self._dead_letters = dead_letters
        self._with_origins = origins
        self._exact = exact
        self._json = JsonRows(schema, exact=exact)
        self._leaves = leaves(schema)
        self._repeated_leaves = max((_repeated_leaves(column.type) for column in schema), default=0)
        self._csv: dict[Kind, CsvRows] = {}
        self._held: list[tuple[Origin, Block]] = []
        self._held_bytes = 0
        # The source of the last record converted.
        self._last: Origin | None = None

    def add(self, origin: Origin, block: Block) -> None:
        """Add consecutive records of a source.

        Raises:
            InvalidInput: there are so many dead-letter records that the schema must be wrong.
        """
        if self._held and self._held[0][1].kind != block.kind:
            self.flush()
        self._held.append((origin, block))
        self._held_bytes += sum(map(len, block.records))
        if self._held_bytes >= BLOCK_BYTES:
            self.flush()

    def drop(self, origin: Origin) -> bool:
        """Forget the records of the last source; return False if some of them are rows already."""
        self._held = [one for one in self._held if one[0] != origin]
        return origin != self._last

    def flush(self) -> None:
        """Convert what is held."""
        held, self._held, self._held_bytes = self._held, [], 0
        if not held:
            return
        self._last = held[-1][0]
        records = [record for _, block in held for record in block.records]
        self.counted += len(records)
        start = values = 0
        for end, record in enumerate(records, 1):
            values += self._leaves + self._repeated_leaves * record.count(b"{")
            if values >= _MOST_VALUES or end == len(records):
                self._convert(records[start:end], held, start)
                start, values = end, 0

    def _convert(
        self, records: Sequence[bytes], held: list[tuple[Origin, Block]], start: int
    ) -> None:
        kind = held[0][1].kind
        found = self._rows_of(kind).convert(records)
        table, known = found.table, []
        if found.misfits or self._with_origins:
            known = [*islice(_places(held), start, start + len(records))]
        for index, reason in sorted(found.misfits.items()):
            origin, position = known[index]
            self._dead_letters.add(origin.uri, position, records[index], kind, reason)
        for index in found.unknown:
            self.has_unknown = True
            self.unknown.add(Block(kind, 0, [records[index]]))
        if self._with_origins:
            table = self._located(table, known, found.misfits)
        self._output.append(table)

    def _rows_of(self, kind: Kind) -> JsonRows | CsvRows:
        if kind.kind == JSON:
            return self._json
        found = self._csv.get(kind)
        if found is None:
            found = self._csv[kind] = CsvRows(kind, self._schema, exact=self._exact)
        return found

    def _located(
        self, table: pa.Table, places: list[tuple[Origin, int]], misfits: dict[int, str]
    ) -> pa.Table:
        """Return rows with the key of each row's source, and its position there."""
        fitting = [one for index, one in enumerate(places) if index not in misfits]
        keys = pa.array([origin.key for origin, _ in fitting], pa.string())
        positions = pa.array([position for _, position in fitting], pa.int64())
        return pa.table([*table.columns, keys, positions], schema=with_origin_columns(self._schema))


def _repeated_leaves(kind: pa.DataType) -> int:
    """Return how many values one object within a list of a column may have."""
    if pa.types.is_list(kind) and not pa.types.is_list(kind.value_type):
        return leaves(kind.value_type) if pa.types.is_struct(kind.value_type) else 0
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return max(map(_repeated_leaves, inner), default=0)


def _places(held: list[tuple[Origin, Block]]) -> Iterator[tuple[Origin, int]]:
    """Yield the source and the position of each record."""
    for origin, block in held:
        for number in range(len(block.records)):
            yield origin, block.first + number
