"""The input of a run, checked and with every default filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Any

from compactor.errors import InvalidInput
from compactor.formats import Declaration, spec_of
from compactor.formats.parquet import is_merged
from compactor.limits import USUAL, WorkerLimits
from compactor.model import Format, Partition
from compactor.settings.fields import FIELDS, RunFields
from compactor.settings.layout import StateLayout
from compactor.settings.partitioning import PartitionBy, parse_partition_by
from compactor.settings.reader_checks import check_readers
from compactor.settings.tables import TableAddress, parse_table, require_readable_key
from compactor.settings.units import seconds_of
from compactor.settings.uris import S3Uri, SourceLocation, parse_source
from compactor.settings.windows import (
    MAX_WINDOW_PREFIXES,
    has_fixed_length,
    window_bounds,
    window_steps,
)
from compactor.settings.wire import default_of, wire_fields

__all__ = ["STATE_ROOT", "Settings", "default_state_uri"]

STATE_ROOT = "_compactor/"
# Prefixes of directories that Delta uses for its own files.
_DELTA_OWN = ("_delta", "_change_data")
# An absolute path: Spark runs in another directory. This is the only database it has a driver for.
_SQLITE = "sqlite:////"


@dataclass(frozen=True, slots=True)
class Settings(RunFields):
    """One run's input, and what follows from it.

    Attributes:
        limits: the limits of a worker. Not a field of the input.
    """

    limits: WorkerLimits = USUAL

    @classmethod
    def from_input(cls, given: object) -> Settings:
        """Check a run's input and fill in the defaults.

        Args:
            given: the JSON object, as ``json.loads`` returns it. The result of :meth:`to_dict`
                is accepted and gives equal settings.

        Raises:
            InvalidInput: names the first invalid field, its value and what is accepted.
        """
        fields = wire_fields(given)
        values: dict[str, Any] = {
            name: spec.parse(fields[name] if name in fields else default_of(spec))
            for name, spec in FIELDS.items()
        }
        # With events, everything pending is compacted, whatever its date.
        if values["date_format"] and values["window"] is None and values["listing"] == "list":
            values["window"] = "1d"
        if values["s3_state_uri"] is None:
            values["s3_state_uri"] = default_state_uri(values["s3_destination_uri"])
        if values["table"] is not None:
            values["output_format"] = "parquet"
        settings = cls(**values)
        _check_locations(settings)
        _check_window(settings)
        _check_engine(settings)
        _check_parquet(settings)
        _check_table(settings)
        _check_upserts(settings)
        check_readers(settings, settings.source.root, settings.destination, settings.state)
        return settings

    def to_dict(self) -> dict[str, Any]:
        """Return all fields of the input, ready for JSON; :meth:`from_input` reads them."""
        return {name: _plain(getattr(self, name)) for name in FIELDS}

    @property
    def source(self) -> SourceLocation:
        """The source's root and the pattern below it."""
        return _source(self.s3_source_uri)

    def declared(self, key: str) -> Declaration | None:
        """Return what is declared of a source, by its key; None for nothing."""
        number = self.declaration_number(key)
        return self.formats[number - 1] if number else None

    def declaration_number(self, key: str) -> int:
        """Return the number in ``formats``, from 1, of what is declared of a source; 0: nothing."""
        if not self.formats:
            return 0
        relative = key.removeprefix(self.source.root.prefix)
        matching = (number for number, one in enumerate(self.formats, 1) if one.matches(relative))
        return next(matching, 0)

    def declared_for_output(self, key: str) -> Declaration | None:
        """Return what is declared of the sources of an output, by the output's key.

        It has the directories and the format of its sources, not their names.

        Raises:
            InvalidInput: declarations that differ may apply.
        """
        relative = key.removeprefix(self.destination.prefix)
        possible = []
        for declaration in self.formats:
            if f".{spec_of(declaration.format).extension}" not in relative.rpartition("/")[2]:
                continue
            if declaration.may_cover(relative.rpartition("/")[0]):
                possible.append(declaration)
                if declaration.covers_directories:
                    break
        if len({declaration.text for declaration in possible}) > 1:
            accepted = "with a readers' table, declarations that differ by directory or format"
            raise InvalidInput("formats", _plain(tuple(possible)), accepted)
        return possible[0] if possible else None

    def merges(self, key: str) -> bool:
        """Return whether a source is Parquet, declared or by its name."""
        return is_merged(key, self.declared(key))

    @property
    def converts(self) -> bool:
        """Whether records of other formats become Parquet rows."""
        if self.output_format != "parquet":
            return False
        for declaration in self.formats:
            if declaration.format is not Format.PARQUET:
                return True
            if declaration.match == "*":
                return False
        return True

    @property
    def columnar(self) -> bool:
        """Whether the settings ask for outputs that hold rows instead of their sources' bytes."""
        return self.output_format == "parquet" or any(
            declaration.format is Format.PARQUET for declaration in self.formats
        )

    @property
    def formats_text(self) -> str:
        """All declarations as one text."""
        return json.dumps(_plain(self.formats), separators=(",", ":"))

    @property
    def all_on_spark(self) -> bool:
        """Whether Spark compacts every partition: a table with a key is merged right after."""
        return self.engine == "spark" or bool(self.upsert_key)

    def is_oversized(self, objects: int, size: int) -> bool:
        """Return whether so many sources are more than a worker takes of a partition in a run."""
        if self.all_on_spark or self.engine == "worker":
            return self.all_on_spark
        return objects > self.limits.lambda_max_objects or size > self.lambda_max_bytes

    @property
    def destination(self) -> S3Uri:
        """Where outputs are written."""
        return _uri("s3_destination_uri", self.s3_destination_uri)

    @property
    def state(self) -> S3Uri:
        """Where the commit log and the run's own files are written."""
        return _uri("s3_state_uri", self.s3_state_uri)

    @property
    def layout(self) -> StateLayout:
        """Where the files of the state are."""
        return StateLayout(self.state)

    def partition_at(self, path: str) -> Partition:
        """Return the partition with this path."""
        root = self.source.root
        return Partition(root.bucket, root.prefix + path, path)

    def outputs_of(self, partition: Partition) -> tuple[str, str]:
        """Return the bucket and the prefix of a partition's outputs."""
        return self.destination.bucket, self.destination.prefix + partition.path

    @property
    def takes_events(self) -> bool:
        """Whether the run takes the objects that events named, instead of listing the source."""
        return self.listing != "list"

    @property
    def open_partition_seconds(self) -> int:
        """How long after its newest object a partition gets full outputs only."""
        return 6 * self.settle_seconds

    @property
    def deletes(self) -> bool:
        """Whether sources are deleted."""
        return self.delete_after is not None

    @property
    def retention_seconds(self) -> float:
        """How long sources are kept after their commit; infinite if they are never deleted."""
        return inf if self.delete_after is None else seconds_of(self.delete_after)

    @property
    def table_address(self) -> TableAddress | None:
        """Address of the table; None if there is no table."""
        return None if self.table is None else parse_table(self.table)

    @property
    def table_partitions(self) -> tuple[PartitionBy, ...]:
        """The partitioning of a table that a run creates; empty for none."""
        return tuple(map(parse_partition_by, self.table_partitioning))

    def window_at(self, now: float) -> tuple[datetime, datetime] | None:
        """Return the first instant of the window and the first one after it; None for no window.

        There is no window without date_format, or if objects are listed by events.

        Args:
            now: UNIX seconds.

        Raises:
            InvalidInput: the window is empty or has too many partitions.
        """
        if self.date_format is None or self.window is None:
            return None
        start, end = window_bounds(self.window, now)
        if start >= end:
            ends = "; START.. ends with yesterday" if self.window.endswith("..") else ""
            raise InvalidInput("window", self.window, f"a START before the END{ends}")
        if window_steps(self.date_format, start, end) > MAX_WINDOW_PREFIXES:
            unit = "hours" if "%H" in self.date_format else "days"
            accepted = f"a window of at most {MAX_WINDOW_PREFIXES:,} {unit}"
            raise InvalidInput("window", self.window, accepted)
        return start, end


# Cached: called for every key that is built, a dozen times per partition.
@lru_cache(64)
def _uri(field: str, text: str) -> S3Uri:
    return S3Uri.parse(field, text)


@lru_cache(64)
def _source(text: str) -> SourceLocation:
    return parse_source(text)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, Declaration):
        return value.to_dict()
    return value.value if isinstance(value, StrEnum) else value


def default_state_uri(destination_uri: str) -> str:
    """Return the default location of a destination's state.

    Raises:
        InvalidInput: not a destination, or a whole bucket, which leaves no room for the state.
    """
    destination = S3Uri.parse("s3_destination_uri", destination_uri)
    if not destination.prefix:
        raise InvalidInput(
            "s3_destination_uri",
            destination_uri,
            "a prefix in the bucket, or an s3_state_uri in another bucket beside it",
        )
    state = S3Uri(destination.bucket, STATE_ROOT + destination.prefix).uri
    return S3Uri.parse("s3_state_uri", state).uri


def _check_locations(settings: Settings) -> None:
    source, destination, state = settings.source.root, settings.destination, settings.state
    if destination.overlaps(source):
        raise InvalidInput(
            "s3_destination_uri",
            settings.s3_destination_uri,
            f"a prefix that neither contains the source {source.uri} nor lies in it",
        )
    for name, other in (("destination", destination), ("source", source)):
        if state.overlaps(other):
            raise InvalidInput(
                "s3_state_uri",
                settings.s3_state_uri,
                f"a prefix that neither contains the {name} {other.uri} nor lies in it",
            )


def _check_window(settings: Settings) -> None:
    window = settings.window
    if window is not None and settings.date_format is None:
        raise InvalidInput("window", window, "no window unless date_format is given")
    if window is not None and settings.takes_events:
        raise InvalidInput("window", window, "no window when listing is events: all is taken")
    if settings.date_format is not None and settings.depth:
        raise InvalidInput("depth", settings.depth, "0 when date_format is given")
    if window is not None and has_fixed_length(window):
        settings.window_at(now=0.0)


def _check_engine(settings: Settings) -> None:
    if settings.engine == "spark" and settings.spark_engine == "none":
        accepted = '"auto" or "worker" when spark_engine is "none"'
        raise InvalidInput("engine", settings.engine, accepted)
    if settings.upsert_key and settings.engine == "worker":
        raise InvalidInput("engine", "worker", "auto or spark with upsert_key: Spark merges rows")
    if settings.upsert_key and settings.spark_engine == "none":
        accepted = "emr or emr_serverless with upsert_key: Spark merges into the table"
        raise InvalidInput("spark_engine", settings.spark_engine, accepted)


def _check_parquet(settings: Settings) -> None:
    becomes_rows = settings.output_format == "parquet"
    for declaration in settings.formats if becomes_rows else ():
        if declaration.single_byte:
            accepted = "utf-8 when output_format is parquet: its texts are UTF-8"
            raise InvalidInput("formats", declaration.to_dict(), accepted)
    if settings.parquet_schema is not None and not settings.converts:
        accepted = "no schema unless output_format is parquet and the sources are not"
        raise InvalidInput("parquet_schema", settings.parquet_schema, accepted)


def _check_table(settings: Settings) -> None:
    address = settings.table_address
    if address is None:
        if settings.table_partitioning:
            accepted = "an empty list unless table is given"
            raise InvalidInput("table_partitioning", list(settings.table_partitioning), accepted)
        return
    if not settings.upsert_key:
        require_readable_key(address, "s3_destination_uri", settings.destination.prefix)
    location = address.location
    if location is None:
        # Only the catalog knows the location; it is checked before the table is written to.
        return
    for name, place in (("source", settings.source.root), ("state", settings.state)):
        if location.overlaps(place):
            accepted = f"a table that neither contains the {name} {place.uri} nor lies in it"
            raise InvalidInput("table", settings.table, accepted)
    _check_delta_destination(settings, location)


def _check_upserts(settings: Settings) -> None:
    given, address = list(settings.upsert_key), settings.table_address
    if not given:
        for name in ("order_by", "delete_when"):
            value = _plain(getattr(settings, name))
            if value:
                raise InvalidInput(name, value, "nothing unless upsert_key is given")
        return
    if address is None:
        raise InvalidInput("upsert_key", given, "an empty list unless table is given")
    if settings.table_partitioning:
        accepted = "an empty list with upsert_key: make the table first, with partitions of its own"
        raise InvalidInput("table_partitioning", list(settings.table_partitioning), accepted)
    doubled = [name for name in settings.order_by if name in settings.upsert_key]
    if doubled:
        accepted = f"columns outside upsert_key: {doubled[0]} is equal in all records of a key"
        raise InvalidInput("order_by", list(settings.order_by), accepted)
    _check_keys_table(settings, address)


def _check_keys_table(settings: Settings, address: TableAddress) -> None:
    if address.kind == "sql" and not address.uri.startswith(_SQLITE):
        accepted = (
            "a table in Glue, in a REST catalog, of Delta, or in a file of SQLite by its whole path"
            " (sql:sqlite:////data/catalog.db#…), with upsert_key"
        )
        raise InvalidInput("table", settings.table, accepted)
    location = address.keys.location
    places = (settings.source.root, settings.destination, settings.state)
    for place in places if location is not None else ():
        if location is not None and location.overlaps(place):
            accepted = f"another table: the one of its keys, {location.uri}, overlaps {place.uri}"
            raise InvalidInput("table", settings.table, accepted)


def _check_delta_destination(settings: Settings, location: S3Uri) -> None:
    """Check that a Delta table's outputs are below it, in a directory that VACUUM ignores.

    Readers find files only below the table. VACUUM ignores names that begin with ``_``.
    """
    destination = settings.destination
    inside = destination.bucket == location.bucket
    inside = inside and destination.prefix.startswith(f"{location.prefix}_")
    first = destination.prefix.removeprefix(location.prefix).partition("/")[0]
    if not inside or first.startswith(_DELTA_OWN):
        raise InvalidInput(
            "s3_destination_uri",
            settings.s3_destination_uri,
            f"a prefix such as {location.uri}_compacted/ for this Delta table: below it, where a"
            " directory whose name begins with _ keeps VACUUM away",
        )
