"""Finds sources whose content a commit has already, by size and CRC32, and then in the log."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from compactor.errors import UnreadableSource
from compactor.log.content_index import UNREAD_MARK, mark_of
from compactor.log.entries import Commit
from compactor.log.manifest import ManifestRow
from compactor.model import PASSING_REASONS, Again, ObjectGroup, SourceObject
from compactor.outputs import plain_content as plain
from compactor.outputs import slices
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings


def compared(
    body: SourceBody,
    content: plain.PlainContent,
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
) -> tuple[Again | None, plain.PlainContent]:
    """Compare a source with what was compacted of its key before.

    Long content is read to its end for that, and then read again from its start.

    Returns:
        The match, if the source looks like earlier content, else None; and the source's content.

    Raises:
        SourceChanged, UnreadableSource: see :func:`compactor.outputs.plain_content.read_again`.
    """
    source = body.source
    marks = group.held.get(source.identity)
    if not marks:
        return None, content
    if not content.complete:
        for _ in content.chunks():
            continue
    stored = _stored_md5(source, store) if UNREAD_MARK in marks else ""
    if stored or mark_of(content.size, content.crc32) in marks:
        return Again(source, 0, content.size, content.crc32, stored), content
    if content.complete:
        return None, content
    return None, plain.read_again(source, store, settings)


def compared_whole(group: ObjectGroup, settings: Settings, store: ObjectStore) -> Again | None:
    """Compare the one source of a group, which S3 is to copy, with earlier content of its key.

    Raises:
        SourceChanged: the source differs from its listing.
        UnreadableSource: the source cannot be read now, so that the result is unknown.
    """
    (source,) = group.sources
    marks = group.held.get(source.identity)
    if not marks:
        return None
    size = crc32 = None
    if marks - {UNREAD_MARK}:
        try:
            content = plain.read_again(source, store, settings)
            for _ in content.chunks():
                continue
            size, crc32 = content.size, content.crc32
        except UnreadableSource as error:
            if error.reason in PASSING_REASONS:
                raise
            # Content that does not decompress cannot be what was read before, so it is copied.
            size = crc32 = None
    stored = _stored_md5(source, store) if UNREAD_MARK in marks else ""
    if stored or mark_of(size, crc32) in marks:
        return Again(source, 0, size, crc32, stored)
    return None


def _stored_md5(source: SourceObject, store: ObjectStore) -> str:
    body = plain.fetched(source, store)
    return _md5(body.chunks() if body.chunks is not None else (body.content or b"",))


def _md5(pieces: Iterable[bytes]) -> str:
    # CRC32 is not sufficient: a gzip object ends in the CRC32 of its content, so that objects of
    # equal size whose content is stored uncompressed all have the same CRC32.
    digest = hashlib.md5(usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def found_in(
    again: Iterable[Again],
    commits: Iterable[Commit],
    published: Collection[int],
    store: ObjectStore,
    *,
    put_later: bool = False,
) -> tuple[Again, ...]:
    """Return the sources with the newest commit of their content, without those not found.

    Args:
        again: sources of one partition that look like earlier content.
        commits: the partition's valid commits, newest first; read only as far as needed.
        published: sequence numbers of commits whose output is known to be readable. These commits
            cannot become void.
        store: the store of outputs, which are read to compare what S3 copied into them.
        put_later: leave out sources that were put before their commit was written.

    Raises:
        ObjectMissing, InvalidInput: such an output is missing, or cannot be read.
    """
    left = {(one.source.bucket, one.source.key): one for one in again}
    found: list[Again] = []
    for commit in commits:
        if not left:
            break
        if commit.sequence not in published:
            continue
        for one in _held_by(commit, left, store):
            del left[one.source.bucket, one.source.key]
            if not put_later or one.source.last_modified > commit.created_at:
                found.append(one)
    return tuple(found)


def _held_by(
    commit: Commit, left: Mapping[tuple[str, str], Again], store: ObjectStore
) -> Iterator[Again]:
    """Yield sources whose content a commit has; the caller removes each from ``left``."""
    for row in commit.rows:
        one = left.get((row.source.bucket, row.source.key))
        if one is not None and _is_same(one, row, commit, store):
            found = replace(one, plain_bytes=row.plain_bytes, crc32=row.crc32, stored_md5="")
            yield replace(found, of=commit.sequence)
    for earlier in commit.again:
        # The same ETag was recorded as delivered again before; that entry has its content.
        one = left.get((earlier.source.bucket, earlier.source.key))
        if one is not None and one.source.identity == earlier.source.identity:
            yield replace(earlier, source=one.source)


def put_again(source: SourceObject) -> Again:
    """Return a source that was put again with the ETag, and so the content, of a commit."""
    return Again(source, 0, None, None)


def _is_same(one: Again, row: ManifestRow, commit: Commit, store: ObjectStore) -> bool:
    if one.source.identity == row.source.identity:
        return True
    if row.plain_bytes is not None and row.crc32 is not None:
        return (one.plain_bytes, one.crc32) == (row.plain_bytes, row.crc32)
    output = commit.output
    if not one.stored_md5 or one.source.size != row.source.size or output is None:
        return False
    if output.columnar is not None:
        # The bytes of the source are in no output.
        return False
    if not slices.is_unproven(row, commit):
        return one.stored_md5 == row.source.etag
    return one.stored_md5 == _md5(store.open(output.bucket, output.key))
