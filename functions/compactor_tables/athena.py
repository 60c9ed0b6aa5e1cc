"""Athena's statements for an order, and the meaning of its answers. Pure.

OPTIMIZE accepts conditions on partition columns only. VACUUM retains what the table's own
properties say ("OPTIMIZE", "VACUUM" and "Optimize Iceberg tables" in the Athena user guide). So
partitions are optimized one by one, and the properties are set before VACUUM. The state machine
repeats a statement that needs more runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any
from uuid import UUID

import msgspec

from compactor_tables.orders import EXPIRE, ORPHANS, REWRITE, Condition, Order

PROPERTIES, OPTIMIZE, COUNT, VACUUM = "properties", "optimize", "count", "vacuum"
#: Limit of statements per table and run: an execution has 25,000 events, a statement takes twenty.
MOST_STATEMENTS = 800
# "You are charged for the number of bytes scanned, rounded up to the nearest megabyte, with a
# 10 MB minimum per query" (Athena pricing).
_LEAST_BYTES, _MEGABYTE = 10_000_000, 1_000_000
# Text of errors of a commit that lost to another ("Troubleshooting" of Iceberg tables; Trino's
# connector).
_CONFLICTS = ("ICEBERG_COMMIT_ERROR", "ICEBERG_CONFLICT", "Failed to commit Iceberg update")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_WIDTH = re.compile(r"(?:truncate|bucket)\[(\d+)\]")
_FORMATS = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}
_AGE, _COUNT = "vacuum_max_snapshot_age_seconds", "vacuum_min_snapshots_to_keep"


class NotAddressable(ValueError):
    """Athena cannot select this partition alone; the text is the reason."""


class Statement(msgspec.Struct, frozen=True):
    """One statement for Athena.

    Attributes:
        kind: ``properties``, ``optimize``, ``count`` or ``vacuum``.
        partition: name of its partition; empty for a whole table.
        where: condition on partition columns; empty for a whole table.
        unfit: why it cannot be sent; empty if it can.
    """

    kind: str
    partition: str = ""
    where: str = ""
    unfit: str = ""


class QueryEnd(msgspec.Struct, frozen=True):
    """How a query ended.

    Attributes:
        state: ``SUCCEEDED``, ``FAILED`` or ``CANCELLED``.
        query_id: Athena's id; empty if no query was started.
        scanned: bytes read.
        seconds: execution time of the engine.
        reason: for a failure, as Athena words it.
    """

    state: str
    query_id: str = ""
    scanned: int = 0
    seconds: float = 0.0
    reason: str = ""

    @property
    def gave_way(self) -> bool:
        """Whether another writer's commit came first, so that nothing was written to the table."""
        return any(name in self.reason for name in _CONFLICTS)

    @property
    def billed_bytes(self) -> int:
        """Bytes that are billed; failed queries are free."""
        if self.state == "FAILED" or (self.state == "CANCELLED" and not self.scanned):
            return 0
        return max(_LEAST_BYTES, -(-self.scanned // _MEGABYTE) * _MEGABYTE)


def statements(order: Order, types: Mapping[str, str]) -> list[Statement]:
    """Return all statements of an order, in the order in which they run.

    Args:
        order: for an Iceberg table in Glue.
        types: column -> type, as Iceberg writes it.
    """
    return [*islice(_rewrites(order, types), MOST_STATEMENTS), *_cleaning(order)]


def _rewrites(order: Order, types: Mapping[str, str]) -> Iterator[Statement]:
    for one in order.partitions if REWRITE in order.steps else ():
        try:
            where, unfit = predicate(one.where, types), ""
        except NotAddressable as error:
            where, unfit = "", str(error)
        # Yielded even if it cannot be sent, so that statements keep their numbers when a type
        # changes.
        yield Statement(OPTIMIZE, one.name, where, unfit)
        if order.verify_rows:
            yield Statement(COUNT, one.name, where, unfit)


def _cleaning(order: Order) -> Iterator[Statement]:
    if {EXPIRE, ORPHANS} & {*order.steps}:
        yield Statement(PROPERTIES)
        yield Statement(VACUUM)


def predicate(where: Sequence[Condition], types: Mapping[str, str]) -> str:
    """Return a condition that selects the rows of one partition; empty for a whole table.

    Raises:
        NotAddressable: there is no such condition that Athena prunes by.
    """
    parts = [_condition(one, types.get(one.column, "")) for one in where]
    return " AND ".join(part for part in parts if part)


def _condition(one: Condition, kind: str) -> str:
    column, transform = quoted(one.column), one.transform.partition("[")[0]
    if transform == "void":
        return ""
    if transform == "bucket":
        raise NotAddressable(f"Athena cannot choose rows by {one.transform} of {one.column}")
    if one.value is None:
        return f"{column} IS NULL"
    if transform == "identity":
        return f"{column} = {literal(one.value, kind)}"
    start, end = _bounds(one, kind)
    return f"({column} >= {literal(start, kind)} AND {column} < {literal(end, kind)})"


def _bounds(one: Condition, kind: str) -> tuple[str, str]:
    """Return the first value of a partition by transform, and the first one after it."""
    transform, value = one.transform, one.value or ""
    width = _WIDTH.fullmatch(transform)
    if width and kind in ("int", "long"):
        return value, f"{_number(value) + int(width[1])}"
    if transform not in _FORMATS or kind not in ("date", "timestamp", "timestamptz"):
        raise NotAddressable(f"Athena cannot choose rows by {transform} of {one.column} ({kind})")
    try:
        start = datetime.strptime(value, _FORMATS[transform]).replace(tzinfo=UTC)
    except ValueError:
        raise NotAddressable(f"{value!r} is no value of {transform} of {one.column}") from None
    end = _next_start(start, transform)
    shape = "%Y-%m-%d" if kind == "date" else "%Y-%m-%d %H:%M:%S"
    return start.strftime(shape), end.strftime(shape)


def _next_start(start: datetime, transform: str) -> datetime:
    if transform == "year":
        return start.replace(year=start.year + 1)
    if transform == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + (timedelta(days=1) if transform == "day" else timedelta(hours=1))


def _number(value: str) -> int:
    if not re.fullmatch(r"-?\d+", value):
        raise NotAddressable(f"{value!r} is no whole number")
    return int(value)


def literal(value: str, kind: str) -> str:
    """Return a value as a literal of Athena's SQL.

    Args:
        value: as text.
        kind: type of its column, as Iceberg writes it.

    Raises:
        NotAddressable: it is not a value of this type, or partitions are not selected by values of
            this type.
    """
    written = _LITERALS.get(kind.partition("(")[0])
    if written is None:
        raise NotAddressable(f"Athena is not asked for partitions by values of type {kind or '?'}")
    try:
        return written(value)
    except (ValueError, InvalidOperation):
        raise NotAddressable(f"{value!r} is no value of type {kind}") from None


def _text(value: str) -> str:
    if "\x00" in value:
        raise NotAddressable("a text with a zero character stands in no statement")
    return "'" + value.replace("'", "''") + "'"


def _truth(value: str) -> str:
    if value.lower() not in ("true", "false"):
        raise ValueError
    return value.lower()


def _decimal(value: str) -> str:
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError
    return f"DECIMAL '{number:f}'"


def _date(value: str) -> str:
    return f"DATE '{datetime.strptime(value, '%Y-%m-%d').replace(tzinfo=UTC):%Y-%m-%d}'"


def _moment(value: str, zone: str) -> str:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return f"TIMESTAMP '{moment.isoformat(sep=' ', timespec='microseconds')}{zone}'"


_LITERALS: Mapping[str, Callable[[str], str]] = {
    "string": _text,
    "boolean": _truth,
    "int": lambda value: f"{_number(value)}",
    "long": lambda value: f"BIGINT '{_number(value)}'",
    "decimal": _decimal,
    "date": _date,
    "timestamp": lambda value: _moment(value, ""),
    "timestamptz": lambda value: _moment(value, " UTC"),
    "uuid": lambda value: f"UUID '{UUID(value)}'",
}


def quoted(name: str) -> str:
    """Quote a name for Trino's SQL."""
    return '"' + name.replace('"', '""') + '"'


def _hive(name: str) -> str:
    """Quote a name for Hive's SQL, as which VACUUM and ALTER TABLE are parsed.

    VACUUM accepts backticks around names that begin with an underscore, and no double quotes.
    """
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def sql(statement: Statement, order: Order, versions: tuple[str, str] = ("", "")) -> str:
    """Return the text of a statement; the database is a parameter of the query.

    Args:
        statement: that can be sent.
        order: that it belongs to.
        versions: snapshots right before and after the rewrite, for ``count``.
    """
    table = order.address.name[-1]
    where = f" WHERE {statement.where}" if statement.where else ""
    if statement.kind == OPTIMIZE:
        return f"OPTIMIZE {quoted(table)} REWRITE DATA USING BIN_PACK{where}"
    if statement.kind == COUNT:
        sides = (
            f"(SELECT count(*) FROM {quoted(table)} FOR VERSION AS OF {_number(version)}{where})"  # noqa: S608 - every name is quoted, and every value written by its type
            for version in versions
        )
        return f"SELECT {', '.join(sides)}"
    if statement.kind == VACUUM:
        return f"VACUUM {_hive(table)}"
    kept = ", ".join(f"'{name}'='{value}'" for name, value in wanted_properties(order).items())
    return f"ALTER TABLE {_hive(table)} SET TBLPROPERTIES ({kept})"


def wanted_properties(order: Order) -> dict[str, str]:
    """Return the table properties for VACUUM, which has one age limit for snapshots and orphans."""
    return {_AGE: f"{int(kept_seconds(order))}", _COUNT: f"{order.keep_versions}"}


def kept_seconds(order: Order) -> float:
    """Return the age at which VACUUM deletes snapshots as well as orphans."""
    return max(order.keep_seconds, order.orphan_seconds)


def token(order: Order, number: int) -> str:
    """Return the request token of a statement, which the state machine completes by the attempt.

    Args:
        order: that the statement belongs to.
        number: of the statement in :func:`statements`.

    Returns:
        64 characters.
    """
    key = json.dumps([order.run_id, order.table, number])
    return hashlib.blake2b(key.encode(), digest_size=32).hexdigest()


def query_end(answer: Mapping[str, Any]) -> QueryEnd:
    """Return how a query ended, by its result in Step Functions or the error it caught."""
    if "QueryExecution" in answer:
        return _end_of(answer["QueryExecution"])
    cause = str(answer.get("Cause", ""))
    try:
        error = json.loads(cause)
    except ValueError:
        error = None
    if isinstance(error, dict) and isinstance(error.get("QueryExecution"), dict):
        return _end_of(error["QueryExecution"])
    # The error came before a query was started.
    return QueryEnd("FAILED", reason=f"{answer.get('Error', 'Unknown')}: {cause}")


def _end_of(execution: Mapping[str, Any]) -> QueryEnd:
    status = execution.get("Status", {})
    figures = execution.get("Statistics", {})
    error = status.get("AthenaError") or {}
    reasons = (status.get("StateChangeReason"), error.get("ErrorMessage"))
    return QueryEnd(
        state=status.get("State", "FAILED"),
        query_id=execution.get("QueryExecutionId", ""),
        scanned=int(figures.get("DataScannedInBytes", 0)),
        seconds=figures.get("EngineExecutionTimeInMillis", 0) / 1_000,
        reason=next((one for one in reasons if one), ""),
    )
