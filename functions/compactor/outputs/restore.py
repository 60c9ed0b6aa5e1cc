"""Restore: returns the content of any source from the output that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compactor.errors import InvalidInput, ObjectMissing, object_gone
from compactor.log.entries import Commit
from compactor.log.manifest import ManifestRow
from compactor.model import Compression, SourceObject
from compactor.outputs import slices
from compactor.ports import ObjectStore
from compactor.sizes import MIB

# Size of one GET of an uncompressed output.
_RANGE_BYTES = 16 * MIB
_REMEDY = (
    "bring it back from a backup or its earlier versions; compactor verify --sources shows which of"
    " its sources still stand"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sources to restore.

    Attributes:
        keys: the sources' keys, in one bucket or in several.
        bucket: the sources' bucket; None for any.
    """

    keys: frozenset[str]
    bucket: str | None = None

    def fits(self, source: SourceObject) -> bool:
        """Return True if this source is wanted."""
        return source.key in self.keys and self.bucket in (None, source.bucket)


@dataclass(frozen=True, slots=True)
class Found:
    """A commit, and its rows of wanted sources."""

    commit: Commit
    rows: tuple[ManifestRow, ...]


def find(commits: Iterable[Commit], wanted: Wanted) -> Iterator[Found]:
    """Yield the first commits that hold the wanted sources, until each key is found.

    Args:
        commits: valid commits, the newest first.
        wanted: what to look for.
    """
    missing = set(wanted.keys)
    for commit in commits:
        rows = tuple(r for r in commit.rows if r.source.key in missing and wanted.fits(r.source))
        if rows:
            yield Found(commit, rows)
        missing.difference_update(row.source.key for row in rows)
        if not missing:
            return


def keeps_bytes(commit: Commit) -> bool:
    """Return False if the output is columnar, so that it does not hold its sources' bytes."""
    return commit.output is None or commit.output.columnar is None


def require_bytes(found: Found) -> None:
    """Require that the output holds the bytes of its sources.

    Raises:
        InvalidInput: the output is columnar: it holds their rows, not their bytes.
    """
    output = found.commit.output
    if output is not None and not keeps_bytes(found.commit):
        raise InvalidInput(
            "KEY",
            found.rows[0].source.key,
            f"a source whose bytes are in an output; {output.key} holds its rows, not its bytes"
            " (the original stays until clean-up)",
        )


def restore(found: Found, store: ObjectStore) -> Iterator[tuple[ManifestRow, Iterator[bytes]]]:
    """Yield the found rows with their sources' plain bytes in pieces, in manifest order.

    An output is read once, up to the last of these sources; of an uncompressed one only from the
    first of them.

    For a server-side copy, the bytes are those that were stored. The pieces of one row must be
    consumed before the next row is requested. They are checked against the size and the checksum
    in the manifest after the last piece.

    Raises:
        IntegrityError: the output is missing or damaged.
        InvalidInput: the output is columnar: it holds the rows of its sources, not their bytes.
        UnreadableSource: while iterating, if the output does not decompress.
    """
    require_bytes(found)
    start, end = 0, None
    output = found.commit.output
    if output is not None and output.compression is Compression.NONE and not output.copied:
        start = min((row.offset for row in found.rows if row.length), default=0)
        end = max(row.offset + row.length for row in found.rows)
    pieces = _plain_pieces(found, start, end, store)
    for row, own in slices.restored_from(found.rows, pieces, start):
        yield row, slices.checked(row, own, found.commit)


def _plain_pieces(found: Found, start: int, end: int | None, store: ObjectStore) -> Iterator[bytes]:
    """Yield the plain bytes of an output; with ``end``, only those of this range."""
    output = found.commit.output
    if output is None:
        return
    try:
        if end is None:
            yield from slices.plain_pieces(output, store.open(output.bucket, output.key))
            return
        for at in range(start, end, _RANGE_BYTES):
            yield store.get_range(output.bucket, output.key, at, min(_RANGE_BYTES, end - at))
    except ObjectMissing as error:
        where = f"the output of commit {found.commit.sequence}, {output.uri},"
        raise object_gone(where, _REMEDY) from error
