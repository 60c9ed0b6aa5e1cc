"""The address, in a run's input, of the table that query engines read."""

from __future__ import annotations

from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import S3Uri

READER_TABLE_ACCEPTED = "glue:DATABASE.TABLE, names in lower case, as engines read them"
GLUE = "glue"
# Without a leading underscore or dot: query engines hide such names.
_MANIFESTS_ROOT = "compactor-readers/"


def manifests_of(destination: S3Uri) -> S3Uri:
    """Return where the object lists for the table's partitions are stored."""
    return S3Uri(destination.bucket, _MANIFESTS_ROOT + destination.prefix)


def parse_reader_table(value: object) -> TableAddress:
    """Parse the address of a table in Glue's catalog.

    Raises:
        ValueError: it is invalid; the message says what is accepted.
    """
    try:
        address = parse_table(value)
    except ValueError:
        raise ValueError(READER_TABLE_ACCEPTED) from None
    if address.kind != GLUE or address.text != address.text.lower():
        raise ValueError(READER_TABLE_ACCEPTED)
    return address
