"""What S3 keeps beside the bytes of sources, on its way into the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from compactor.attributes import Attributes
from compactor.errors import UnreadableSource
from compactor.log.manifest import ManifestRow
from compactor.model import QuarantineReason, SourceObject
from compactor.ports import ObjectStore


class KeptAttributes:
    """Attributes of the sources of one output; equal ones are kept once.

    Args:
        most_bytes: of memory that they may take, about.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._sets: dict[Attributes, Attributes] = {}
        self._of: dict[bytes, Attributes] = {}

    def has_room(self, attributes: Attributes) -> bool:
        """True when those of one more source may be kept."""
        return attributes in self._sets or self._bytes + attributes.cost <= self._most_bytes

    def take(self, source: SourceObject, attributes: Attributes) -> None:
        """Keep those of a source."""
        known = self._sets.get(attributes)
        if known is None:
            self._bytes += attributes.cost
            known = self._sets[attributes] = attributes
        self._of[source.identity] = known

    def told(self, rows: Sequence[ManifestRow], store: ObjectStore) -> Iterable[ManifestRow]:
        """The rows with what is kept of their sources."""
        if not rows:
            return rows
        if not store.sees_tags(rows[0].source):
            found = ((row, self._of.get(row.source.identity)) for row in rows)
            return [row._replace(attributes=without_tags(one)) for row, one in found]
        if not self._of:
            return rows
        return [row._replace(attributes=self._of.get(row.source.identity)) for row in rows]


def without_tags(attributes: Attributes | None) -> Attributes:
    """The same of an object whose tags this role may not see."""
    return replace(attributes or Attributes(), tags=None)


def require_not_encrypted(attributes: Attributes | None) -> None:
    """Do nothing for an object whose bytes mean what they say.

    Raises:
        UnreadableSource: it was encrypted before it came to S3, or tells how such a one is
            decrypted: nobody could decrypt it from an output.
    """
    if attributes is not None and attributes.is_client_encrypted:
        detail = "its user metadata says that it was encrypted before it came to S3"
        raise UnreadableSource(QuarantineReason.CLIENT_ENCRYPTED, detail)
