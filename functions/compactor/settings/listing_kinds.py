"""Where a run finds out which objects exist: LIST, an inventory, or events."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from compactor.settings.tables import TableAddress, parse_inventory_table
from compactor.settings.uris import parse_location

LISTING_ACCEPTED = (
    '"list"; inventory:URI of an S3 Inventory, its manifest.json or the prefix of its'
    " configuration ending in /, or of a live inventory table (s3tables:TABLE_BUCKET_ARN#"
    "NAMESPACE.TABLE, rest:URI#… or sql:URI#…); or events:TABLE/STREAM"
)
_MANIFEST = re.compile(r"s3://[^/]+/(?:.+/)?(?:manifest\.json)?")
_TABLES = ("s3tables:", "rest:", "sql:")
_STREAM = re.compile(r"[A-Za-z0-9_.-]{3,255}/[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


class ListingKind(StrEnum):
    """The kinds of listings."""

    LIST = "list"
    INVENTORY = "inventory"
    EVENTS = "events"


class ListingSource(msgspec.Struct, frozen=True):
    """Where a run finds out which objects exist.

    Attributes:
        kind: which of the others is set.
        manifest_uri: of an S3 Inventory, or the prefix that its configuration is delivered to.
        table: a live inventory table of S3 Metadata.
        registry: where events are stored: TABLE/STREAM.
    """

    kind: ListingKind = ListingKind.LIST
    manifest_uri: str | None = None
    table: TableAddress | None = None
    registry: str | None = None

    @property
    def text(self) -> str:
        """The setting as in a run's input."""
        place = self.manifest_uri or self.registry or (self.table and self.table.text)
        return f"{self.kind.value}:{place}" if place else self.kind.value


def parse_listing(text: object) -> ListingSource:
    """Parse the setting ``listing``.

    Raises:
        ValueError: it is invalid; the message says what is accepted.
    """
    if text == ListingKind.LIST:
        return ListingSource()
    kind, _, place = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind == ListingKind.EVENTS and _STREAM.fullmatch(place):
        return ListingSource(ListingKind.EVENTS, registry=place)
    if kind == ListingKind.INVENTORY and place.startswith(_TABLES):
        return ListingSource(ListingKind.INVENTORY, table=parse_inventory_table(place))
    if kind != ListingKind.INVENTORY or not _MANIFEST.fullmatch(place):
        raise ValueError(LISTING_ACCEPTED)
    parse_location(place.removesuffix("manifest.json"))
    return ListingSource(ListingKind.INVENTORY, manifest_uri=place)
