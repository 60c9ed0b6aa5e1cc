"""Upserts: of each key the last record is in the table, whatever order the records came in (pure).

A record's rank is (the columns of ``order_by``, its source's key, its position in the source): of a
key's records the one of the highest rank wins, wherever and whenever the others arrive. So beside
the table lies one of keys, which has the rank of each key's winner, also where the winner says that
the key is deleted: without that a late, older record would bring a deleted key back to life.

Taking a maximum may be done in any order, in any portions and again. This is what makes it safe to
merge a portion that is in one of the two tables already, and nothing else is needed to repair what
a crash between both leaves: the table of rows is merged first, so the table of keys is the one that
may lag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from compactor.errors import IntegrityError, InvalidInput
from compactor.settings.settings import Settings

#: Columns of an output beside those of its records: where a record comes from.
SOURCE_KEY, POSITION = "__source_key", "__position"
#: Columns of the table of keys beside the key and :func:`UpsertKey.rank`.
DELETED, ENTRY = "__deleted", "__entry"
#: What the names of columns begin with that only the merges see.
OWN = "__upsert_"
#: Property of the table of keys: the uuid of the table that it belongs to.
KEYS_OF = "s3-compactor.keys-of"
_ORDER = "__order_"


@dataclass(frozen=True, slots=True)
class UpsertKey:
    """What makes records one row, and which of them it is.

    Attributes:
        columns: a row's key. Null is a value like others.
        order_by: the later record has the greater values; null is the smallest of all.
        delete_when: a record deletes its key when one of these columns has, as text, one of its
            values.
    """

    columns: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    delete_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, object]:
        """The same as a run's input has it."""
        deletes = {name: list(values) for name, values in self.delete_when.items()}
        return {
            "upsert_key": list(self.columns),
            "order_by": list(self.order_by),
            "delete_when": deletes or None,
        }

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the values of ``order_by`` in the table of keys."""
        return tuple(f"{_ORDER}{number}" for number in range(1, len(self.order_by) + 1))

    @property
    def rank(self) -> tuple[str, ...]:
        """Names of all that a record's rank is made of, the most important first."""
        return (*self.order, SOURCE_KEY, POSITION)

    def own(self, columns: Sequence[str]) -> list[str]:
        """Columns of an output whose names upserts use themselves."""
        taken = {name.lower() for name in (*self.order, DELETED, ENTRY)}
        return [name for name in columns if name.lower() in taken or name.lower().startswith(OWN)]

    def missing(self, columns: Sequence[str], table: Sequence[str] = ()) -> list[str]:
        """What upserts ask of an output's columns and these have not.

        Args:
            columns: of the output.
            table: of the table; what it has may be absent from an output, and is null there.
        """
        needed = (*self.columns, *self.order_by, SOURCE_KEY, POSITION)
        found = [name for name in dict.fromkeys(needed) if name not in columns]
        known = {*columns, *table, *found}
        return [*found, *(name for name in self.delete_when if name not in known)]


def key_of(settings: Settings) -> UpsertKey | None:
    """The key of a run's table; None where its rows have none."""
    if not settings.upsert_key:
        return None
    return UpsertKey(settings.upsert_key, settings.order_by, dict(settings.delete_when or {}))


def require_same_key(key: UpsertKey | None, known: UpsertKey | None, table: str) -> None:
    """Make sure that a table keeps the key that it was begun with.

    Args:
        key: that of the run; None where it has none.
        known: that of the entries before.
        table: as the run's input names it.

    Raises:
        InvalidInput: it is another one; names the first field that differs.
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
    """What became of the records of some entries; each is counted once.

    Attributes:
        records: read from the outputs.
        inserted: rows of keys that were new, or deleted.
        updated: rows of keys that had one.
        deleted: records that deleted their key, or keep a new one deleted.
        superseded: records that lost to another one of the same entries.
        stale: records that lost to what was in the table.
    """

    records: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    superseded: int = 0
    stale: int = 0

    @property
    def accounted(self) -> int:
        """Records of which it is known what became of them."""
        return self.inserted + self.updated + self.deleted + self.superseded + self.stale

    @property
    def line(self) -> str:
        """What became of them, for a person."""
        named = ("inserted", "updated", "deleted", "superseded", "stale")
        return ", ".join(f"{getattr(self, name):,} {name}" for name in named)

    def add(self, other: UpsertCounts) -> None:
        """Add another's numbers.

        Raises:
            IntegrityError: not every record became one of the five.
        """
        became = other.accounted
        if became != other.records:
            raise IntegrityError(f"of {other.records:,} records {became:,} are accounted for")
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def fault_between(rows_last: int, keys_last: int | None, keys_of: str, uuid: str) -> str:
    """Why a table of keys does not belong to a table of rows; empty when it does.

    Args:
        rows_last: up to which entry the table of rows has everything.
        keys_last: likewise for the table of keys; None where there is none.
        keys_of: which table the keys say they belong to.
        uuid: which table the rows are.
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
    """The statement that brings winners into the table of rows.

    Args:
        table: as SQL names it.
        changes: likewise; one row for each key that wins.
        key: of the table.
        columns: of the table.
        given: of the winners; what they have not becomes null, because a record is a whole row.
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
    """The statement that brings winners into the table of keys; arguments as above."""
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
    """A column as an expression that means this very column, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def _same_key(key: UpsertKey) -> str:
    return " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in key.columns)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
