"""What upserts ask of a table, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from compactor.sinks.upserts import quoted

PREFIX = "s3-compactor"


class Token(NamedTuple):
    """What a commit says of itself: everything up to entry ``number`` of this log is in."""

    log_id: str
    number: int

    @property
    def text(self) -> str:
        """For a person, and to find the commit by."""
        return f"{PREFIX}.{self.log_id}:{self.number}"


@dataclass(frozen=True, slots=True)
class Seen:
    """One table, as it was read.

    Attributes:
        uuid: a table that is made again has another.
        location: URI below which it keeps its files.
        last: up to which entry of the log it has everything.
        version: id of a snapshot, or a number; None for a table without any.
        schema: its columns.
        properties: of the table.
        fault: why ``last`` cannot be true; empty when nothing contradicts it.
        handle: the engine's own.
    """

    uuid: str
    location: str
    last: int
    version: int | None
    schema: StructType
    properties: Mapping[str, str]
    fault: str
    handle: Any = field(default=None, compare=False, repr=False)


class Engine(Protocol):
    """Tables of one kind."""

    @property
    def session(self) -> SparkSession:
        """Where frames and views are made for it."""
        ...

    def keys_of(self, name: str) -> str:
        """Name of the table of keys of this table."""
        ...

    def see(self, name: str, log_id: str) -> Seen | None:
        """The table as it is now; None where there is none."""
        ...

    def rows(self, name: str, seen: Seen) -> DataFrame:
        """The table's rows as it was seen, whatever happened since."""
        ...

    def create(
        self, name: str, schema: StructType, properties: Mapping[str, str], beside: str = ""
    ) -> None:
        """Make the table.

        Args:
            name: of the table.
            schema: its columns.
            properties: its own.
            beside: URI of the place of the table of rows, where this is that of its keys.

        Raises:
            TableConflict: another writer made it meanwhile.
        """
        ...

    def add_columns(self, name: str, added: StructType) -> None:
        """Give the table more columns; they are null in the rows that it has."""
        ...

    def merge(self, name: str, seen: Seen, statement: Callable[[str], str], token: Token) -> None:
        """Run a MERGE and, in the commit that makes its rows visible, say how far the table is.

        Args:
            name: of the table.
            seen: how it was seen; where it has changed, nothing is committed.
            statement: makes the MERGE into a given target.
            token: what the table then has.

        Raises:
            TableConflict: the table has changed; nothing of this is in it.
            TransientStoreError: it is unknown whether it is.
        """
        ...


def columns_of(schema: StructType) -> str:
    """Names and types of columns, as statements list them."""
    return ", ".join(f"{quoted(one.name)} {one.dataType.simpleString()}" for one in schema.fields)


def cause_of(error: Exception) -> str:
    """Names of the Java classes of an error of Spark, the outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    names = []
    while java is not None:
        names.append(str(java.getClass().getName()))
        java = java.getCause()
    if not names and isinstance(error, PySparkException):
        names.append(type(error).__name__)
    return " ".join(names)
