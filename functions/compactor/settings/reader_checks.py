"""Checks the fields of the readers' table against each other and against other fields."""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.model import Format
from compactor.settings.fields import RunFields
from compactor.settings.reader_table import manifests_of
from compactor.settings.uris import S3Uri


def check_readers(fields: RunFields, source: S3Uri, destination: S3Uri, state: S3Uri) -> None:
    """Refuse a readers' table that no engine could read, and its fields without a table.

    Args:
        fields: of the run.
        source: location of the sources.
        destination: location of the outputs.
        state: location of the state.

    Raises:
        InvalidInput: names the invalid field.
    """
    if fields.reader_table is None:
        if fields.reader_partitions:
            accepted = "nothing unless reader_table is given"
            raise InvalidInput("reader_partitions", fields.reader_partitions, accepted)
        return
    _check_beside(fields)
    manifests = manifests_of(destination)
    for name, place in (("source", source), ("destination", destination), ("state", state)):
        if manifests.overlaps(place):
            accepted = f"null while the {name} {place.uri} overlaps {manifests.uri}"
            raise InvalidInput("reader_table", fields.reader_table, accepted)


def _check_beside(fields: RunFields) -> None:
    if fields.table is not None:
        accepted = "null beside table: query engines read that one"
        raise InvalidInput("reader_table", fields.reader_table, accepted)
    if not (fields.date_format or fields.depth or "*" in fields.s3_source_uri):
        accepted = "null, or partitions: a date_format, a depth or wildcards in the source"
        raise InvalidInput("reader_table", fields.reader_table, accepted)
    merged = any(declaration.format is Format.PARQUET for declaration in fields.formats)
    if fields.reader_mode == "exact" and fields.output_format == "parquet" and not merged:
        accepted = (
            '"compacted" when sources are converted: no partition of a table has both formats'
        )
        raise InvalidInput("reader_mode", fields.reader_mode, accepted)
