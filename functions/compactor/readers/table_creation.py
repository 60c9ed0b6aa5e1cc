"""Creates the readers' table, or checks that an existing one can be switched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from compactor.encoding.codecs import decompress_stream, detect_compression
from compactor.errors import AlreadyExists, InvalidInput, UnreadableSource
from compactor.formats import Detected, detect
from compactor.formats.parquet import is_named
from compactor.model import Format, Partition, SourceObject
from compactor.ports import ObjectStore
from compactor.readers.formats import (
    JSON_FORMATS,
    Reading,
    is_read_by,
    reading_of,
    require_exact,
    table_descriptor,
)
from compactor.readers.inferred_columns import Column, found_in
from compactor.readers.partition_columns import PartitionColumns
from compactor.readers.reader_catalog import ReaderCatalog
from compactor.readers.states import Held
from compactor.settings.reader_table import manifests_of, parse_reader_table
from compactor.settings.settings import Settings

MADE_BY = "compactor.made_by"
_PROJECTION = "projection.enabled"
_MOST_SAMPLED = 64
# Of each partition that is switched. Each output has one header; sources may differ.
_OUTPUTS_COMPARED, _SOURCES_COMPARED = 16, 4
_SAMPLE_BYTES = 128 << 10
# Limits how much of an object is decompressed, whatever its compression ratio.
_PLAIN_BYTES = 1 << 20


def require_table(
    settings: Settings,
    partition: Partition,
    held: Held,
    catalog: ReaderCatalog,
    store: ObjectStore,
) -> Mapping[str, Any]:
    """Return the table as the catalog has it, creating it if needed.

    Args:
        settings: name the table.
        partition: one of its partitions, from which its columns are inferred.
        held: what was found in that partition.
        catalog: of the table.
        store: where sources and outputs are.

    Raises:
        InvalidInput: its partitions must not be switched, or its columns are not known.
            Whether it has a column for each segment of the path is not checked here.
    """
    found = catalog.table()
    if found is None:
        # Another worker of this run may create it first.
        with suppress(AlreadyExists):
            catalog.create_table(table_input(settings, partition, held, store))
        found = catalog.table()
    if found is None:
        raise InvalidInput("reader_table", settings.reader_table, "a table that stays there")
    _require_fit(found, settings)
    return found


def _require_fit(table: Mapping[str, Any], settings: Settings) -> None:
    parameters = table.get("Parameters") or {}
    if str(parameters.get(_PROJECTION, "")).lower() == "true":
        accepted = "a table without partition projection, which passes over what partitions say"
        raise InvalidInput("reader_table", settings.reader_table, accepted)


def table_input(
    settings: Settings, partition: Partition, held: Held, store: ObjectStore
) -> dict[str, Any]:
    """Return the table as it would be created (``TableInput``).

    Args:
        settings: of the runs.
        partition: one of its partitions.
        held: what was found in that partition.
        store: where sources and outputs are.

    Raises:
        InvalidInput: its columns are not known, or no engine reads such objects.
    """
    columns, reading = _columns(settings, held, store)
    names = PartitionColumns(settings).names(partition.path)
    taken = sorted({one["name"] for one in columns} & set(names))
    if taken:
        accepted = f"other names than the columns have: {', '.join(taken)}"
        raise InvalidInput("reader_partitions", list(names), accepted)
    _, name = parse_reader_table(settings.reader_table).name
    # No query reads the table's own location; it must not contain anything by accident.
    nowhere = f"{manifests_of(settings.destination).uri}none/"
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", MADE_BY: "s3-compactor", **reading.table},
        "PartitionKeys": [{"Name": one, "Type": "string"} for one in names],
        # No query reads the table's own location; it must not contain anything by accident.
        "StorageDescriptor": table_descriptor(reading, columns, nowhere),
    }


def _columns(
    settings: Settings, held: Held, store: ObjectStore
) -> tuple[Sequence[Column], Reading]:
    samples = _samples((*held.outputs, *held.loose), store, _MOST_SAMPLED)
    found, lines = _first_detected(samples, settings, held)
    format = found.format
    plain = [body for _, body in samples]
    columns: Sequence[Column]
    if format is Format.PARQUET:
        # If sources are converted, only the outputs are Parquet.
        objects = (
            held.outputs if settings.output_format == "parquet" else (*held.outputs, *held.loose)
        )
        from compactor.readers import parquet_columns  # noqa: PLC0415 - only Parquet needs Arrow

        columns = parquet_columns.columns_of(_spread(objects, _MOST_SAMPLED), store)
        reading = reading_of(format, settings)
    else:
        columns, reading = found_in(found, plain, settings, lines=lines)
    require_exact(reading, format, settings)
    return columns, reading


def require_alike(
    table: Mapping[str, Any], settings: Settings, held: Held, store: ObjectStore
) -> None:
    """Check that a table which was made here reads the objects of a partition as what they are.

    Its columns and SerDe are those of the partition that it was made from.

    Raises:
        InvalidInput: an object has columns at other places, or another form.
    """
    is_ours = (table.get("Parameters") or {}).get(MADE_BY) is not None
    if not is_ours or settings.output_format == "parquet":
        return
    outputs = _samples(held.outputs, store, _OUTPUTS_COMPARED)
    for one, body in (*outputs, *_samples(held.loose, store, _SOURCES_COMPARED)):
        for found, lines in _detected([(one, body)], settings, held):
            columns: Sequence[Column] = ()
            if found.format in (*JSON_FORMATS, Format.PARQUET):
                # By name, so that it does not matter which members a record has.
                reading = reading_of(found.format, settings, lines=lines)
            else:
                columns, reading = found_in(found, [body], settings, lines=lines)
            if not is_read_by(table["StorageDescriptor"], columns, reading):
                raise InvalidInput(
                    f"reader_table: {one.key}",
                    ", ".join(column["name"] for column in columns),
                    "the columns of the table, in its order and form; another one can have them",
                )


def _first_detected(
    samples: Sequence[tuple[SourceObject, bytes]], settings: Settings, held: Held
) -> tuple[Detected, bool]:
    """Return the format of the first object that is detected with certainty; see _detected.

    Raises:
        InvalidInput: no format was detected with certainty.
    """
    for detected in _detected(samples, settings, held):
        return detected
    raise InvalidInput("reader_table", settings.reader_table, "objects of a format that is known")


def _detected(
    samples: Sequence[tuple[SourceObject, bytes]], settings: Settings, held: Held
) -> Iterator[tuple[Detected, bool]]:
    """Yield the formats that are detected with certainty, and whether documents are on lines."""
    outputs = {one.identity for one in held.outputs}
    for one, body in samples:
        is_output = one.identity in outputs
        if settings.output_format == "parquet" or (
            is_named(one.key) if is_output else settings.merges(one.key)
        ):
            yield Detected(Format.PARQUET), False
            continue
        declared = settings.declared_for_output if is_output else settings.declared
        declaration = declared(one.key)
        try:
            found = detect(body, one.key, complete=False, declaration=declaration)
        except UnreadableSource:
            continue
        if found is not None:
            yield found, declaration is not None and declaration.lines


def _samples(
    objects: Sequence[SourceObject], store: ObjectStore, most: int
) -> list[tuple[SourceObject, bytes]]:
    found = [(one, _beginning(one, store)) for one in _spread(objects, most)]
    return [(one, body) for one, body in found if body]


def _spread(objects: Sequence[SourceObject], most: int) -> Sequence[SourceObject]:
    """Return the objects to sample, spread over the partition."""
    step = max(1, len(objects) // most)
    return objects[::step][:most]


def _beginning(one: SourceObject, store: ObjectStore) -> bytes:
    """Return decompressed bytes from the start of an object, as far as they can be read."""
    packed = store.get_range(one.bucket, one.key, 0, min(one.size, _SAMPLE_BYTES))
    plain = bytearray()
    try:
        for piece in _plain(packed):
            plain += piece
            if len(plain) > _PLAIN_BYTES:
                break
    except UnreadableSource:
        # The range ends within a compressed member, as expected.
        pass
    return bytes(plain)


def _plain(packed: bytes) -> Iterable[bytes]:
    return decompress_stream([packed], detect_compression(packed))
