"""Reads the snapshots, columns and properties in an Iceberg table's metadata file.

The file is read as plain JSON, so that work by Athena needs no Iceberg library.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from compactor.decoding import decoded

_GZIP = b"\x1f\x8b"


class Snapshot(msgspec.Struct, frozen=True, rename="kebab"):
    """One snapshot.

    Attributes:
        timestamp_ms: when it was made, UNIX milliseconds.
        parent_snapshot_id: of the previous snapshot; None for the first one.
        manifest_list: its URI; None in early format-1 tables, which have none.
        schema_id: of the schema that it was written with.
    """

    snapshot_id: int
    timestamp_ms: int
    parent_snapshot_id: int | None = None
    manifest_list: str | None = None
    schema_id: int | None = None
    summary: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def only_rewrites(self) -> bool:
        """Whether it holds the rows of its parent in other files."""
        return self.summary.get("operation") == "replace"


class _Field(msgspec.Struct, frozen=True):
    name: str
    type: str | dict[str, object]


class _Schema(msgspec.Struct, frozen=True, rename="kebab"):
    fields: tuple[_Field, ...]
    schema_id: int = 0


class _Ref(msgspec.Struct, frozen=True, rename="kebab"):
    snapshot_id: int


class _Metadata(msgspec.Struct, frozen=True, rename="kebab"):
    location: str
    current_snapshot_id: int | None = None
    current_schema_id: int = 0
    schema: _Schema | None = None
    schemas: tuple[_Schema, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    refs: dict[str, _Ref] = msgspec.field(default_factory=dict)
    properties: dict[str, str] = msgspec.field(default_factory=dict)


_parse = msgspec.json.Decoder(_Metadata).decode


def _decode(body: bytes) -> _Metadata:
    return _parse(gzip.decompress(body) if body.startswith(_GZIP) else body)


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table by one metadata file.

    Attributes:
        current: id of the snapshot that readers see; empty for a table without one.
        snapshots: by id.
        types: of top-level columns, as Iceberg writes them; a nested one is ``struct``, ``list``
            or ``map``.
        kept: ids of snapshots that a branch or tag names.
        columns: column names of the current snapshot's schema, in its order.
    """

    location: str
    current: str
    snapshots: Mapping[str, Snapshot]
    types: Mapping[str, str]
    properties: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    columns: Sequence[str] = ()

    def writers(self, since: float, measured: str) -> list[str] | None:
        """Return the ids of snapshots that changed rows, newest first; None if some have expired.

        Args:
            since: UNIX seconds; older snapshots do not count.
            measured: id of a snapshot that, like its ancestors, does not count.
        """
        found: list[str] = []
        for one in self._back_to(measured):
            if one is None:
                return None
            if one.timestamp_ms < since * 1_000:
                break
            if not one.only_rewrites:
                found.append(f"{one.snapshot_id}")
        return found

    def since(self, name: str) -> list[Snapshot] | None:
        """Return the snapshots after a given one, newest first; None if some have expired.

        Args:
            name: id of the given snapshot.
        """
        found = [*self._back_to(name)]
        return None if None in found else [one for one in found if one is not None]

    def _back_to(self, name: str) -> Iterator[Snapshot | None]:
        """Go back from the current snapshot to the one after ``name``.

        Yields:
            Each snapshot, newest first; None at the end, if the next one has expired.
        """
        current = self.current
        while current and current != name:
            one = self.snapshots.get(current)
            yield one
            parent = None if one is None else one.parent_snapshot_id
            current = "" if parent is None else f"{parent}"

    def due(self, now: float, keep_seconds: float, keep_versions: int) -> list[Snapshot]:
        """Return the snapshots that an expiry with these limits removes, oldest first.

        Args:
            now: UNIX seconds.
            keep_seconds: younger snapshots stay.
            keep_versions: number of newest snapshots that stay in any case.
        """
        ordered = sorted(self.snapshots.values(), key=lambda one: one.timestamp_ms)
        old = ordered[: max(0, len(ordered) - max(1, keep_versions))]
        stays = {*self.kept, self.current}
        return [
            one
            for one in old
            if one.timestamp_ms / 1_000 < now - keep_seconds and f"{one.snapshot_id}" not in stays
        ]


def read_state(where: str, body: bytes) -> TableState:
    """Decode a metadata file, compressed or not.

    Args:
        where: its URI.
        body: its content.

    Raises:
        IntegrityError: it is invalid.
    """
    found = decoded(_decode, where, body, way_out="it is no metadata of an Iceberg table")
    # Format version 1 wrote -1 for no snapshot.
    current = "" if found.current_snapshot_id in (None, -1) else f"{found.current_snapshot_id}"
    snapshots = {f"{one.snapshot_id}": one for one in found.snapshots}
    now = _schema(found, found.current_schema_id)
    of_current = snapshots[current].schema_id if current in snapshots else None
    return TableState(
        location=found.location,
        current=current,
        snapshots=snapshots,
        types={one.name: _type_text(one.type) for one in now.fields},
        properties=found.properties,
        kept=frozenset(f"{one.snapshot_id}" for one in found.refs.values()),
        columns=[one.name for one in _schema(found, of_current).fields],
    )


def _schema(found: _Metadata, wanted: int | None) -> _Schema:
    by_id = {one.schema_id: one for one in found.schemas}
    number = found.current_schema_id if wanted is None else wanted
    return by_id.get(number) or found.schema or _Schema(())


def _type_text(given: str | Mapping[str, object]) -> str:
    return given if isinstance(given, str) else str(given.get("type", "struct"))
