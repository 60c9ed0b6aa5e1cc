"""How a run's input names a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compactor.settings.uris import S3Uri, parse_location

TABLE_ACCEPTED = (
    "glue:DATABASE.TABLE, rest:URI#NAMESPACE.TABLE, sql:URI#NAMESPACE.TABLE or"
    " delta:s3://bucket/prefix/"
)
DELTA = "delta"
#: What the table of keys is called, behind the name of the table of rows.
KEYS_SUFFIX = "__keys"
ICEBERG_CATALOGS = ("glue", "rest", "sql")
# Names are parts of keys, and of identifiers in every engine.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,254}")
_WITHOUT = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TableAddress:
    """Where a table is.

    Attributes:
        kind: ``glue``, ``rest``, ``sql`` (catalogs of Iceberg tables) or ``delta``.
        uri: of the catalog; empty for Glue. Of a Delta table, its location.
        name: namespace and table of an Iceberg table, from the outside in; else empty.
    """

    kind: str
    uri: str = ""
    name: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a run's input has it."""
        if self.kind == DELTA:
            return f"{DELTA}:{self.uri}"
        name = ".".join(self.name)
        return f"{self.kind}:{self.uri}#{name}" if self.uri else f"{self.kind}:{name}"

    @property
    def keys(self) -> TableAddress:
        """Of a table whose rows have a key: where the table of its keys is."""
        if self.kind == DELTA:
            return TableAddress(DELTA, f"{self.uri.rstrip('/')}{KEYS_SUFFIX}/")
        return TableAddress(self.kind, self.uri, (*self.name[:-1], self.name[-1] + KEYS_SUFFIX))

    @property
    def location(self) -> S3Uri | None:
        """Of a Delta table; None where the catalog alone knows it."""
        return parse_location(self.uri) if self.kind == DELTA else None


def parse_table(text: object) -> TableAddress:
    """Read a table's address.

    Raises:
        ValueError: it is none; the message says what is accepted.
    """
    if not isinstance(text, str) or _WITHOUT.search(text):
        raise ValueError(TABLE_ACCEPTED)
    kind, colon, rest = text.partition(":")
    if kind == DELTA and rest:
        location = parse_location(rest)
        if not location.prefix:
            raise ValueError(f"{TABLE_ACCEPTED}; a whole bucket is no table")
        return TableAddress(DELTA, location.uri)
    uri, _, name = rest.rpartition("#")
    names = tuple(name.split("."))
    fits = len(names) == 2 if kind == "glue" else len(names) >= 2
    if kind not in ICEBERG_CATALOGS or not colon or bool(uri) == (kind == "glue") or not fits:
        raise ValueError(TABLE_ACCEPTED)
    if not all(_NAME.fullmatch(one) for one in names):
        raise ValueError(f"{TABLE_ACCEPTED}; names have letters, digits, _ and -")
    return TableAddress(kind, uri, names)
