"""The protocol for tables that upserts need, for every table format."""

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
    """Recorded in a commit: the table has every entry of this log up to ``number``."""

    log_id: str
    number: int

    @property
    def text(self) -> str:
        """The token as readable text, by which the commit can be found."""
        return f"{PREFIX}.{self.log_id}:{self.number}"


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of one table when it was read.

    Attributes:
        uuid: changes if the table is dropped and created again.
        location: URI below which the table keeps its files.
        last: number of the last log entry in the table; it has all entries up to it.
        version: snapshot id (Iceberg) or version number (Delta); None without any snapshot.
        schema: the table's columns.
        properties: of the table.
        fault: why ``last`` must be wrong; empty if nothing contradicts it.
        handle: the engine's own data.
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
    """Access to tables of one format."""

    @property
    def session(self) -> SparkSession:
        """The session for frames and views that statements use."""
        ...

    def keys_of(self, name: str) -> str:
        """Return the name of this table's table of keys."""
        ...

    def see(self, name: str, log_id: str) -> Seen | None:
        """Return the table's current state; None if there is no such table."""
        ...

    def rows(self, name: str, seen: Seen) -> DataFrame:
        """Return the table's rows at the version that was seen."""
        ...

    def create(
        self, name: str, schema: StructType, properties: Mapping[str, str], beside: str = ""
    ) -> None:
        """Create the table.

        Args:
            name: of the table.
            schema: its columns.
            properties: of the table.
            beside: location of the table of rows, if this is its table of keys.

        Raises:
            TableConflict: another writer created it in the meantime.
        """
        ...

    def add_columns(self, name: str, added: StructType) -> None:
        """Add columns to the table; they are null in existing rows."""
        ...

    def merge(self, name: str, seen: Seen, statement: Callable[[str], str], token: Token) -> None:
        """Run a MERGE, and record the token in the commit that makes its rows visible.

        Args:
            name: of the table.
            seen: the expected state; if the table has changed, nothing is committed.
            statement: returns the MERGE statement for a target.
            token: names the last entry that the table then has.

        Raises:
            TableConflict: the table has changed; nothing was committed.
            TransientStoreError: it is unknown whether the merge was committed.
        """
        ...


def columns_of(schema: StructType) -> str:
    """Return names and types of columns, as listed in SQL statements."""
    return ", ".join(f"{quoted(one.name)} {one.dataType.simpleString()}" for one in schema.fields)


def cause_of(error: Exception) -> str:
    """Return the Java class names of a Spark error and its causes, the outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    names = []
    while java is not None:
        names.append(str(java.getClass().getName()))
        java = java.getCause()
    if not names and isinstance(error, PySparkException):
        names.append(type(error).__name__)
    return " ".join(names)
