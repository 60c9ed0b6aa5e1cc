"""Verify: checks that outputs hold what was read, before the commit and after publication."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from compactor.errors import (
    IntegrityError,
    ObjectMissing,
    UnreadableSource,
    damaged,
    object_gone,
    require_equal,
)
from compactor.formats import spec_of
from compactor.log.entries import Columnar, Commit, Output, require_proven, require_stored
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.outputs import slices
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore


def check_pending(pending: PendingOutput) -> None:
    """Check that the manifest accounts for every byte and record: step 3 of the write order.

    What the writer counted while encoding is compared with what the sources held when they were
    read.

    Raises:
        IntegrityError: a source is missing or occurs twice, slices overlap, or a sum differs.
    """
    _check_sources(pending)
    output = pending.output
    if output is None:
        return
    require_equal("bytes of all parts", sum(part.size for part in output.parts), output.size)
    if output.copied:
        return
    if output.columnar is not None:
        output.require_accounted()
        counted = sum(row.facts.records for row in pending.rows if row.facts is not None)
        require_equal("rows of all sources", counted, output.columnar.rows_in)
        return
    _check_slices(pending.rows, pending.tally.plain_bytes)
    owned = sum(row.length for row in pending.rows)
    require_equal("plain bytes", pending.tally.plain_bytes, owned + pending.tally.frame_bytes)
    require_equal("plain bytes of the output", output.plain_bytes, pending.tally.plain_bytes)
    records = sum(row.facts.records for row in pending.rows if row.facts is not None)
    require_equal("records", records, output.records)
    if output.format is not None and spec_of(output.format).newlines:
        newlines = pending.tally.newlines - pending.tally.frame_newlines
        require_equal("records", newlines, output.records)


def _check_sources(pending: PendingOutput) -> None:
    named = [row.source.identity for row in pending.rows]
    named += [q.source.identity for q in pending.quarantined]
    named += list(pending.misfits)
    named += [source.identity for source in pending.later]
    expected = [source.identity for source in pending.group.sources]
    if sorted(named) != sorted(expected):
        raise IntegrityError(
            f"group {pending.group.id}: {len(expected)} sources went in, "
            f"{len(set(named))} different ones are accounted for"
        )


def _check_slices(rows: Sequence[ManifestRow], plain_bytes: int) -> None:
    end = 0
    for row in rows:
        if row.facts is None or row.plain_bytes is None:
            raise IntegrityError(f"{row.source.key}: no facts to restore it by")
        until = row.offset + row.length
        if row.length and not end <= row.offset <= until <= plain_bytes:
            raise IntegrityError(
                f"{row.source.key}: its slice, bytes {row.offset} to {until} of {plain_bytes},"
                f" overlaps the one that ends at {end}, or ends past the output"
            )
        end = max(end, until)
        expected = _expected_length(row.plain_bytes, row.facts)
        if row.length != expected:
            require_equal(f"bytes of {row.source.key}", row.length, expected)


def _expected_length(plain_bytes: int, facts: SliceFacts) -> int:
    """Return the length of the slice, computed from the source's size and the changes to it."""
    changed = 0
    if facts.edits:
        changed = sum(edit.inserted - len(edit.original) for edit in facts.edits)
    if facts.newlines_stand_for is not None:
        # Every newline except the appended one separates two records.
        changed += (facts.records - 1) * (1 - len(facts.newlines_stand_for))
    dropped = len(facts.dropped_prefix) + len(facts.dropped_suffix)
    return plain_bytes - dropped + facts.appended + changed


def check_commit(commit: Commit, store: ObjectStore) -> int:
    """Read a commit's output again and check every source in it; return its number of records.

    Each source is restored through the manifest and compared with the size and CRC32 it had
    when it was read. The bytes of a server-side copy were never read: its size is compared, and
    its content with the source's ETag if that is known to be an MD5 sum.

    Raises:
        IntegrityError: the output is missing, or any byte of a source differs.
        ObjectArchived: the output must be restored from its archive tier first.
    """
    output = commit.output
    if output is None:
        return 0
    if output.columnar is not None:
        return _check_columnar(output, output.columnar, store)
    where = output.uri
    try:
        stored = _Counted(store.open(output.bucket, output.key))
        for row, pieces in slices.restored(commit, stored.pieces()):
            for _ in slices.checked(row, pieces, commit):
                continue
    except ObjectMissing:
        raise object_gone(where) from None
    except UnreadableSource as error:
        raise damaged(where, error) from error
    require_stored(where, (stored.size, stored.crc32), (output.size, output.crc32))
    return output.records or 0


def check_heads(commit: Commit, store: ObjectStore) -> str:
    """Check what a commit stored by HEAD only, for bytes that cannot be read at the moment.

    Returns:
        A human-readable text: the objects, their storage classes, and what was compared.

    Raises:
        IntegrityError: an object is missing, or has another size or CRC32.
    """
    output = commit.output
    if output is None:
        return "nothing stored"
    heads = [_check_head(output.bucket, output.key, output.size, output.crc32, store)]
    dead = commit.dead_letters
    if dead is not None:
        heads.append(_check_head(dead.bucket, dead.key, dead.size, dead.crc32, store))
    return ", ".join(heads)


def _check_head(bucket: str, key: str, size: int, crc32: int | None, store: ObjectStore) -> str:
    where = f"s3://{bucket}/{key}"
    head = store.head(bucket, key)
    if head is None:
        raise object_gone(where)
    if require_stored(where, (head.size, head.crc32), (size, crc32)):
        return f"{where} ({head.storage_class}; size and CRC32 agree)"
    return f"{where} ({head.storage_class}; size agrees, HEAD has no CRC32 to compare)"


def _check_columnar(output: Output, columnar: Columnar, store: ObjectStore) -> int:
    """Check size and CRC32 of a columnar output, whose rows were read back.

    Those of its dead-letter records are checked as well.
    """
    output.require_accounted()
    dead = columnar.dead_letters
    if dead is not None:
        check_bytes(dead.bucket, dead.key, dead.size, dead.crc32, store)
    check_bytes(output.bucket, output.key, output.size, output.crc32, store)
    return columnar.rows_out


def check_bytes(bucket: str, key: str, size: int, crc32: int | None, store: ObjectStore) -> None:
    """Read a stored object and require this size and CRC32.

    Raises:
        IntegrityError: the object is missing or differs, or its commit has no CRC32.
    """
    where = f"s3://{bucket}/{key}"
    try:
        stored = _Counted(store.open(bucket, key))
        for _ in stored.pieces():
            continue
    except ObjectMissing:
        raise object_gone(where) from None
    require_proven(where, (stored.size, stored.crc32), (size, crc32))


class _Counted:
    """The stored bytes of an output, counted and hashed as they are read."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self.size = 0
        self.crc32 = 0
        self._source = source

    def pieces(self) -> Iterator[bytes]:
        for piece in self._source:
            self.size += len(piece)
            self.crc32 = zlib.crc32(piece, self.crc32)
            yield piece


def read_back(commit: Commit, store: ObjectStore) -> None:
    """Read a published output, if the store did not check its CRC32 itself. Idempotent.

    Raises:
        IntegrityError: the output does not have the committed CRC32. Its sources stay until an
            operator has resolved this.
    """
    output = commit.output
    if output is not None and not store.traits.checks_crc32:
        check_bytes(output.bucket, output.key, output.size, output.crc32, store)
