"""Restore: give back any source from the output that holds it."""

from __future__ import annotations

from collections.abc import Iterator

from compactor import slices
from compactor.commit_log import Commit
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing
from compactor.manifest import ManifestRow
from compactor.ports import ObjectStore


def find(
    commits: Iterator[Commit], key: str, etag: str | None = None
) -> tuple[Commit, ManifestRow]:
    """The newest commit that names a source key (and, if given, its ETag).

    Raises:
        InvalidInput: no commit names it.
    """
    found = None
    for commit in commits:
        for row in commit.rows:
            if row.source.key == key and etag in (None, row.source.etag):
                found = (commit, row)
    if found is None:
        raise InvalidInput("KEY", key, "a source key that a commit of this destination names")
    return found


def restore(commit: Commit, wanted: ManifestRow, store: ObjectStore) -> Iterator[bytes]:
    """The plain bytes of one source, exactly as they were before compaction, in pieces.

    For a server-side copy, the bytes as they were stored. The caller checks size and CRC32
    against the row as the pieces pass.

    Raises:
        IntegrityError: the output is gone or too short.
    """
    output = commit.output
    stored: Iterator[bytes] = iter(())
    if output is not None:
        try:
            stored = store.open(output.bucket, output.key)
        except ObjectMissing:
            raise IntegrityError(f"s3://{output.bucket}/{output.key} is gone") from None
    for row, pieces in slices.restored(commit, stored):
        if row is wanted:
            yield from pieces
            return
        for _ in pieces:
            continue
