"""How a run's input names the table that query engines read, and its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import S3Uri

READER_TABLE_ACCEPTED = "glue:DATABASE.TABLE, names in lower case, as engines read them"
COLUMNS_ACCEPTED = (
    'a list such as [{"name": "id", "type": "bigint"}], each name once, in types of Hive, or'
    " another table in the catalog of reader_table, whose columns are taken"
)
GLUE = "glue"
# Query engines hide names that begin with an underscore or a dot.
_MANIFESTS_ROOT = "compactor-readers/"
# As the Glue Data Catalog takes them; Athena lower-cases every name.
_COLUMN = re.compile(r"[a-z0-9_][a-z0-9_@.$-]{0,254}")
_TYPE = re.compile(r"[a-z][a-z0-9_<>:,() @.$-]{0,130000}")


def manifests_of(destination: S3Uri) -> S3Uri:
    """Where lists of objects lie that partitions of the table name."""
    return S3Uri(destination.bucket, _MANIFESTS_ROOT + destination.prefix)


def parse_reader_table(value: object) -> TableAddress:
    """Read the address of a table in Glue's catalog.

    Raises:
        ValueError: it is none; the message says what is accepted.
    """
    try:
        address = parse_table(value)
    except ValueError:
        raise ValueError(READER_TABLE_ACCEPTED) from None
    if address.kind != GLUE or address.text != address.text.lower():
        raise ValueError(READER_TABLE_ACCEPTED)
    return address


def parse_columns(value: object) -> tuple[Mapping[str, str], ...] | str:
    """Read columns, or the address of the table that has them.

    Raises:
        ValueError: they are none.
    """
    if isinstance(value, str):
        return parse_reader_table(value).text
    if not isinstance(value, Sequence) or not value:
        raise ValueError
    columns = tuple(_column(one) for one in value)
    if len({one["name"] for one in columns}) < len(columns):
        raise ValueError
    return columns


def _column(given: object) -> Mapping[str, str]:
    if not isinstance(given, Mapping) or set(given) != {"name", "type"}:
        raise ValueError
    name, kind = given["name"], given["type"]
    if not isinstance(name, str) or not isinstance(kind, str):
        raise ValueError
    if not _COLUMN.fullmatch(name) or not _TYPE.fullmatch(kind):
        raise ValueError
    return {"name": name, "type": kind}
