"""Make the readers' table, or see that the one in the catalog is fit to be switched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from compactor.encoding.codecs import Limits, decompress_stream, detect_compression
from compactor.errors import AlreadyExists, InvalidInput, UnreadableSource
from compactor.formats import Detected, detect, spec_of
from compactor.formats.csv_evidence import Decision
from compactor.model import Format, Partition, SourceObject
from compactor.planning.dialects import Dialects
from compactor.ports import ObjectStore
from compactor.readers.formats import Reading, reading_of, require_exact, table_descriptor
from compactor.readers.inferred_columns import Column, found_in
from compactor.readers.parquet_columns import columns_of as parquet_columns
from compactor.readers.partition_columns import PartitionColumns
from compactor.readers.reader_catalog import ReaderCatalog
from compactor.readers.states import Held
from compactor.settings.object_rules import csv_header_of
from compactor.settings.reader_table import manifests_of, parse_reader_table
from compactor.settings.settings import Settings

MADE_BY = "compactor.made_by"
_PROJECTION = "projection.enabled"
_MOST_SAMPLED = 64
_SAMPLE_BYTES = 128 << 10
# An object's beginning is looked at, however well it is packed.
_PLAIN_BYTES = 1 << 20
_LIMITS = Limits(max_expansion=None)


def require_table(
    settings: Settings,
    partition: Partition,
    held: Held,
    catalog: ReaderCatalog,
    store: ObjectStore,
) -> Mapping[str, Any]:
    """The table as the catalog has it; made where it is not there.

    Args:
        settings: name it.
        partition: one of its partitions, by which its columns are known.
        held: what was seen of that.
        catalog: of the table.
        store: where sources and outputs are.

    Raises:
        InvalidInput: its partitions are not ours to switch, or its columns are not known.
            Whether it has a column for each segment of the path is not asked here.
    """
    found = catalog.table()
    if found is None:
        # Another worker of this run may be first.
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
    """The table as it would be made (``TableInput``).

    Args:
        settings: of the runs.
        partition: a partition.
        held: what was seen of it.
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
    # No query reads the table's own location, and nothing may be found there by mistake.
    nowhere = f"{manifests_of(settings.destination).uri}none/"
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", MADE_BY: "s3-compactor", **reading.table},
        "PartitionKeys": [{"Name": one, "Type": "string"} for one in names],
        # No query reads the table's own location, and nothing may be found there by mistake.
        "StorageDescriptor": table_descriptor(reading, columns, nowhere),
    }


def format_of(held: Held, settings: Settings, store: ObjectStore) -> Format:
    """What the objects of a partition are.

    Raises:
        InvalidInput: no type is certain.
    """
    return _detected(_samples((*held.outputs, *held.loose), store), settings, store).format


def _columns(
    settings: Settings, held: Held, store: ObjectStore
) -> tuple[Sequence[Column], Reading]:
    samples = _samples((*held.outputs, *held.loose), store)
    found = _detected(samples, settings, store)
    format = found.format
    plain = [body for _, body in samples]
    columns: Sequence[Column]
    if format is Format.PARQUET:
        # Of sources that are converted only the outputs are Parquet.
        objects = (
            held.outputs if settings.output_format == "parquet" else (*held.outputs, *held.loose)
        )
        columns = parquet_columns(_spread(objects), store)
        reading = reading_of(format, settings)
    else:
        columns, reading = found_in(found, plain, settings)
    require_exact(reading, format, settings)
    return columns, reading


def _detected(
    samples: Sequence[tuple[SourceObject, bytes]], settings: Settings, store: ObjectStore
) -> Detected:
    """What the first object is of which it is certain.

    Raises:
        InvalidInput: no type is certain.
    """
    forced = None if settings.format == "auto" else Format(settings.format)
    if settings.columnar or (forced is not None and not spec_of(forced).declared):
        return Detected(forced if forced and not settings.columnar else Format.PARQUET)
    reading = settings.characters
    csv_header = csv_header_of(settings)
    dialects = Dialects(settings, store, samples=False)

    def decide(key: str, delimiter: bytes, columns: int) -> Decision:
        return dialects(_source_key(key, settings), delimiter, columns)

    for one, body in samples:
        try:
            found = detect(
                body,
                one.key,
                complete=False,
                forced=forced,
                reading=reading,
                csv_header=csv_header(_source_key(one.key, settings)),
                decide=decide,
            )
        except UnreadableSource:
            continue
        if found is not None:
            return found
    raise InvalidInput("reader_table", settings.reader_table, "objects of a format that is known")


def _source_key(key: str, settings: Settings) -> str:
    """A key where the sources of an output lie; that of a source itself."""
    root, destination = settings.source.root, settings.destination
    if key.startswith(destination.prefix) and not key.startswith(root.prefix or "/"):
        return root.prefix + key.removeprefix(destination.prefix)
    return key


def _samples(
    objects: Sequence[SourceObject], store: ObjectStore
) -> list[tuple[SourceObject, bytes]]:
    found = [(one, _beginning(one, store)) for one in _spread(objects)]
    return [(one, body) for one, body in found if body]


def _spread(objects: Sequence[SourceObject]) -> Sequence[SourceObject]:
    """As many as are looked at, from all over the partition."""
    step = max(1, len(objects) // _MOST_SAMPLED)
    return objects[::step][:_MOST_SAMPLED]


def _beginning(one: SourceObject, store: ObjectStore) -> bytes:
    """Plain bytes from the start of an object, as far as they can be read."""
    packed = store.get_range(one.bucket, one.key, 0, min(one.size, _SAMPLE_BYTES))
    plain = bytearray()
    try:
        for piece in _plain(packed):
            plain += piece
            if len(plain) > _PLAIN_BYTES:
                break
    except UnreadableSource:
        # Cut in the middle of a member, which is what a range does.
        pass
    return bytes(plain)


def _plain(packed: bytes) -> Iterable[bytes]:
    return decompress_stream([packed], detect_compression(packed), limits=_LIMITS)
