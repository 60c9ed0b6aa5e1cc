"""Addresses of tables in a run's input."""

from __future__ import annotations

import re

import msgspec

from compactor.errors import InvalidInput
from compactor.settings.uris import S3Uri, parse_location

TABLE_ACCEPTED = (
    "glue:DATABASE.TABLE, rest:URI#NAMESPACE.TABLE, sql:URI#CATALOG:NAMESPACE.TABLE or"
    " delta:s3://bucket/prefix/"
)
DELTA = "delta"
#: Appended to a table's name for the table of its keys.
KEYS_SUFFIX = "__keys"
#: The catalog's name in pyiceberg's and Spark's configuration, if the address does not name it.
CATALOG_NAME = "compactor"
ICEBERG_CATALOGS = ("glue", "rest", "sql")
# A namespace and a table.
_PAIR = 2
# Names become parts of keys, and identifiers in every engine.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,254}")
_WITHOUT = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
# Readers of both formats normalise or refuse such paths.
_NO_PATH = re.compile(r"[\x00-\x1f\x7f]|//|(?:^|(?<=/))\.{1,2}/")
# The paths of Iceberg are not encoded, and S3FileIO and pyiceberg cut them there.
_NO_ICEBERG_PATH = re.compile(rf"{_NO_PATH.pattern}|[#?]")
# delta-rs takes the location of a table as a URL.
_NO_URI = re.compile(r"[#?%]")


class TableAddress(msgspec.Struct, frozen=True):
    """The address of a table.

    Attributes:
        kind: ``glue``, ``rest``, ``sql`` (catalogs of Iceberg tables) or ``delta``.
        uri: of the catalog; empty for Glue. For a Delta table, its location.
        name: namespace and table of an Iceberg table, outermost first; otherwise empty.
        catalog: name of the catalog. A catalog in a database stores its tables under its name, so
            two catalogs in one database have separate tables.
    """

    kind: str
    uri: str = ""
    name: tuple[str, ...] = ()
    catalog: str = CATALOG_NAME

    @property
    def text(self) -> str:
        """The address as in a run's input."""
        if self.kind == DELTA:
            return f"{DELTA}:{self.uri}"
        name = ".".join(self.name)
        if self.catalog != CATALOG_NAME:
            name = f"{self.catalog}:{name}"
        return f"{self.kind}:{self.uri}#{name}" if self.uri else f"{self.kind}:{name}"

    @property
    def keys(self) -> TableAddress:
        """Address of the table of keys that belongs to a table with an upsert key."""
        if self.kind == DELTA:
            return TableAddress(DELTA, f"{self.uri.rstrip('/')}{KEYS_SUFFIX}/")
        name = (*self.name[:-1], self.name[-1] + KEYS_SUFFIX)
        return msgspec.structs.replace(self, name=name)

    @property
    def location(self) -> S3Uri | None:
        """Location of a Delta table; None if only the catalog knows the location."""
        return parse_location(self.uri) if self.kind == DELTA else None


def require_readable_key(address: TableAddress, field: str, key: str) -> None:
    """Check that readers of a table find an object with this key or prefix.

    Args:
        address: of the table.
        field: the input field that the key comes from.
        key: of an output, or a prefix of outputs that ends in ``/``.

    Raises:
        InvalidInput: they do not.
    """
    name, pattern = "Iceberg", _NO_ICEBERG_PATH
    if address.kind == DELTA:
        name, pattern = "Delta", _NO_PATH
    problem = pattern.search(key)
    if problem is not None:
        accepted = (
            f"keys without {problem[0]!r}, which readers of {name} tables do not find: copy the"
            " sources below another prefix, or exclude them"
        )
        raise InvalidInput(field, key, accepted)


def parse_table(text: object) -> TableAddress:
    """Parse a table's address.

    Raises:
        ValueError: it is invalid; the message says what is accepted.
    """
    if not isinstance(text, str) or _WITHOUT.search(text):
        raise ValueError(TABLE_ACCEPTED)
    kind, colon, rest = text.partition(":")
    if kind == DELTA and rest:
        location = parse_location(rest)
        if not location.prefix:
            raise ValueError(f"{TABLE_ACCEPTED}; a whole bucket is no table")
        if _NO_URI.search(location.prefix):
            raise ValueError(f"{TABLE_ACCEPTED}; delta-rs decodes #, ? and % of a prefix")
        return TableAddress(DELTA, location.uri)
    if kind not in ICEBERG_CATALOGS or not colon:
        raise ValueError(TABLE_ACCEPTED)
    return _iceberg(kind, rest, TABLE_ACCEPTED)


def _iceberg(kind: str, rest: str, accepted: str) -> TableAddress:
    uri, _, name = rest.rpartition("#")
    catalog = CATALOG_NAME
    if kind == "sql" and ":" in name:
        catalog, _, name = name.partition(":")
    names = tuple(name.split("."))
    fits = len(names) == _PAIR if kind == "glue" else len(names) >= _PAIR
    if bool(uri) == (kind == "glue") or not fits:
        raise ValueError(accepted)
    if not all(_NAME.fullmatch(one) for one in (*names, catalog)):
        raise ValueError(f"{accepted}; names have letters, digits, _ and -")
    return TableAddress(kind, uri, names, catalog)
