"""Upserts: for each key the table holds the last record, whatever order records came in (pure).

A record's rank is (the columns of ``order_by``, its source's key, its position in the source). The
record with the highest rank wins, whenever the others arrive. A second table, of keys, stores the
rank of each key's winner, including winners that delete their key: without it, an older record that
arrives late would bring a deleted key back.

Taking a maximum is commutative, associative and idempotent, so it is safe to merge a batch again
that is already in one of the two tables. No other repair is needed after a crash between the two
merges: the table of rows is merged first, so only the table of keys can lag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from compactor.errors import IntegrityError, InvalidInput
from compactor.settings.settings import Settings

#: Columns that an output has in addition to its records' own: where a record comes from.
SOURCE_KEY, POSITION = "__source_key", "__position"
#: Columns of the table of keys, in addition to the key and :func:`UpsertKey.rank`.
DELETED, ENTRY = "__deleted", "__entry"
#: Prefix of column names that only the merges use.
OWN = "__upsert_"
#: Property of the table of keys: the uuid of the table that it belongs to.
KEYS_OF = "s3-compactor.keys-of"
_ORDER = "__order_"


@dataclass(frozen=True, slots=True)
class UpsertKey:
    """Which columns make records share a row, and which of the records wins.

    Attributes:
        columns: the key of a row. Null is a value like any other.
        order_by: the later record has the greater values; null is the smallest.
        delete_when: a record deletes its key when one of these columns, as text, has one of the
            values given.
    """

    columns: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    delete_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, object]:
        """The key in the form that a run's input has."""
        deletes = {name: list(values) for name, values in self.delete_when.items()}
        return {
            "upsert_key": list(self.columns),
            "order_by": list(self.order_by),
            "delete_when": deletes or None,
        }

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the ``order_by`` values in the table of keys."""
        return tuple(f"{_ORDER}{number}" for number in range(1, len(self.order_by) + 1))

    @property
    def rank(self) -> tuple[str, ...]:
        """Names of the columns that make up a record's rank, most significant first."""
        return (*self.order, SOURCE_KEY, POSITION)

    def own(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of an output whose names are reserved for upserts."""
        taken = {name.lower() for name in (*self.order, DELETED, ENTRY)}
        return [name for name in columns if name.lower() in taken or name.lower().startswith(OWN)]

    def missing(self, columns: Sequence[str], table: Sequence[str] = ()) -> list[str]:
        """Return the required columns that an output lacks.

        Args:
            columns: of the output.
            table: columns of the table; an output may lack these, and they are null then.
        """
        needed = (*self.columns, *self.order_by, SOURCE_KEY, POSITION)
        found = [name for name in dict.fromkeys(needed) if name not in columns]
        known = {*columns, *table, *found}
        return [*found, *(name for name in self.delete_when if name not in known)]


def key_of(settings: Settings) -> UpsertKey | None:
    """Return the key of a run's table; None if its rows have no key."""
    if not settings.upsert_key:
        return None
    return UpsertKey(settings.upsert_key, settings.order_by, dict(settings.delete_when or {}))


def require_same_key(key: UpsertKey | None, known: UpsertKey | None, table: str) -> None:
    """Check that a table keeps the key that it was started with.

    Args:
        key: of the run; None if it has none.
        known: of earlier entries.
        table: as the run's input names it.

    Raises:
        InvalidInput: the key differs; names the first field that does.
    """
    nothing = UpsertKey(())
    mine, its = (key or nothing).fields, (known or nothing).fields
    for name, value in mine.items():
        if value != its[name]:
            accepted = (
                f"{json.dumps(its[name], ensure_ascii=False)}, which {table} was begun with; or"
                " another s3_destination_uri with a table of its own"
            )
            raise InvalidInput(name, value, accepted)


@dataclass(slots=True)
class UpsertCounts:
    """What became of the records of some entries; each record is counted once.

    Attributes:
        records: read from the outputs.
        inserted: rows whose key was new, or deleted before.
        updated: rows whose key had a row.
        deleted: records that deleted their key, or marked a new key as deleted.
        superseded: records that lost to another record of the same entries.
        stale: records that lost to a record that was already in the table.
    """

    records: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    superseded: int = 0
    stale: int = 0

    @property
    def accounted(self) -> int:
        """Number of records whose outcome is known."""
        return self.inserted + self.updated + self.deleted + self.superseded + self.stale

    @property
    def line(self) -> str:
        """The five outcomes in one line."""
        named = ("inserted", "updated", "deleted", "superseded", "stale")
        return ", ".join(f"{getattr(self, name):,} {name}" for name in named)

    def add(self, other: UpsertCounts) -> None:
        """Add another's counts.

        Raises:
            IntegrityError: not every record has one of the five outcomes.
        """
        became = other.accounted
        if became != other.records:
            raise IntegrityError(f"of {other.records:,} records {became:,} are accounted for")
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def fault_between(rows_last: int, keys_last: int | None, keys_of: str, uuid: str) -> str:
    """Return why a table of keys does not belong to a table of rows; empty if it does.

    Args:
        rows_last: number of the last entry in the table of rows.
        keys_last: number of the last entry in the table of keys; None if there is no such table.
        keys_of: uuid of the table that the table of keys names.
        uuid: of the table of rows.
    """
    if keys_last is None:
        return "its table of keys is gone" if rows_last else ""
    if keys_of != uuid:
        return f"its table of keys belongs to another table, {keys_of or 'which one is unknown'}"
    if keys_last > rows_last:
        return (
            f"it has everything up to entry {rows_last}, its table of keys up to {keys_last}: the"
            " table was restored, or the number removed"
        )
    return ""


def merge_rows(
    table: str, changes: str, key: UpsertKey, columns: Sequence[str], given: Sequence[str]
) -> str:
    """Return the SQL statement that merges winners into the table of rows.

    Args:
        table: its name in SQL.
        changes: likewise; a view with one row for each winning key.
        key: of the table.
        columns: of the table.
        given: columns of the winners. Others become null, because a record is a whole row.
    """
    known = frozenset(given)
    values = [f"s.{quoted(name)}" if name in known else "NULL" for name in columns]
    pairs = ", ".join(
        f"t.{quoted(name)} = {value}" for name, value in zip(columns, values, strict=True)
    )
    return (
        f"MERGE INTO {table} t USING {changes} s ON {_same_key(key)}"  # noqa: S608 - names alone
        f" WHEN MATCHED AND s.{quoted(DELETED)} THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {pairs}"
        f" WHEN NOT MATCHED AND NOT s.{quoted(DELETED)}"
        f" THEN INSERT ({_listed(columns)}) VALUES ({', '.join(values)})"
    )


def merge_keys(table: str, changes: str, key: UpsertKey) -> str:
    """Return the SQL statement that merges winners into the table of keys; arguments as above."""
    said = (*key.rank, DELETED, ENTRY)
    pairs = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in said)
    every = (*key.columns, *said)
    values = ", ".join(f"s.{quoted(name)}" for name in every)
    return (
        f"MERGE INTO {table} t USING {changes} s ON {_same_key(key)}"  # noqa: S608 - names alone
        f" WHEN MATCHED THEN UPDATE SET {pairs}"
        f" WHEN NOT MATCHED THEN INSERT ({_listed(every)}) VALUES ({values})"
    )


def quoted(name: str) -> str:
    """Quote a column name for SQL, so that a dot in it is part of the name."""
    return "`" + name.replace("`", "``") + "`"


def _same_key(key: UpsertKey) -> str:
    return " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in key.columns)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
