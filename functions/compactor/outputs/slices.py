"""Reads the sources' slices out of an output, in order, without holding it in memory."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator

from compactor.encoding.codecs import decompress_stream
from compactor.errors import IntegrityError, require_equal
from compactor.log.entries import Commit, Output
from compactor.log.manifest import ManifestRow, restore_slice
from compactor.model import Compression, is_md5


def plain_pieces(output: Output, stored: Iterator[bytes]) -> Iterator[bytes]:
    """Return the decompressed bytes of an output; as it is our own, its expansion is not limited.

    Raises:
        UnreadableSource: while iterating, if the stored bytes do not decompress.
    """
    if output.copied or output.compression is Compression.NONE:
        return stored
    return decompress_stream(stored, output.compression)


def restored(
    commit: Commit, stored: Iterator[bytes]
) -> Iterator[tuple[ManifestRow, Iterator[bytes]]]:
    """Yield each source of a commit with its original plain bytes in pieces, in manifest order.

    The pieces of one source must be consumed before the next source is requested. For a copied
    output they are the bytes of the source as they were stored.

    Raises:
        IntegrityError: the output ends before a slice does.
    """
    if commit.output is None:
        for row in commit.rows:
            yield row, _undone(row, iter(()))
        return
    pieces = plain_pieces(commit.output, stored)
    yield from restored_from(commit.rows, pieces, 0)
    for _ in pieces:
        continue


def restored_from(
    rows: Iterable[ManifestRow], pieces: Iterator[bytes], at: int
) -> Iterator[tuple[ManifestRow, Iterator[bytes]]]:
    """Yield some sources of a commit as :func:`restored` does.

    Args:
        rows: the manifest rows of the sources, in manifest order.
        pieces: plain bytes of the output.
        at: number of plain bytes before the first piece.

    Raises:
        IntegrityError: the pieces end before a slice does.
    """
    reader = SliceReader(pieces, at)
    for row in rows:
        yield row, _undone(row, reader.slice(row.offset, row.length))


def checked(row: ManifestRow, pieces: Iterator[bytes], commit: Commit) -> Iterator[bytes]:
    """Yield the restored pieces of one source, and check them against its manifest row.

    What S3 copied is checked by size, and by the source's ETag if that is an MD5 sum. An ETag looks
    like one under SSE-KMS and SSE-C, too; it is one if S3 gave the copied part the same ETag.

    Raises:
        IntegrityError: after the last piece, if they are not what was read.
    """
    unread = is_as_stored(row)
    # MD5 serves as an identifier here, not as a defence against an attacker.
    md5 = hashlib.md5(usedforsecurity=False)
    size = crc32 = 0
    for piece in pieces:
        size += len(piece)
        crc32 = zlib.crc32(piece, crc32)
        if unread:
            md5.update(piece)
        yield piece
    if unread:
        require_equal(f"copied bytes of {row.source.key}", size, row.source.size)
        if not is_unproven(row, commit):
            what = f"MD5 sum of the copy of {row.source.key}"
            require_equal(what, md5.hexdigest(), row.source.etag)
        return
    require_equal(f"restored bytes of {row.source.key}", size, row.plain_bytes)
    require_equal(f"CRC32 of {row.source.key}", crc32, row.crc32)


def is_unproven(row: ManifestRow, commit: Commit) -> bool:
    """Return True if S3 copied the source, and the commit knows only the size of its bytes."""
    if not is_as_stored(row):
        return False
    parts = commit.output.parts if commit.output is not None else ()
    same = any(part.etag == row.source.etag for part in parts)
    return not (same and is_md5(row.source.etag))


def is_as_stored(row: ManifestRow) -> bool:
    """Return True for a source that S3 copied: it is restored as stored, still compressed."""
    return row.facts is None


def _undone(row: ManifestRow, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Undo the framing. Only slices of formats that are read whole are held in memory."""
    facts = row.facts
    if facts is None:
        yield from pieces
    elif facts.newlines_stand_for is not None or facts.edits:
        yield restore_slice(b"".join(pieces), facts)
    else:
        yield facts.dropped_prefix
        yield from _without_tail(pieces, facts.appended)
        yield facts.dropped_suffix


def _without_tail(pieces: Iterable[bytes], appended: int) -> Iterator[bytes]:
    pending = b""
    for piece in pieces:
        joined = pending + piece if pending else piece
        cut = len(joined) - appended
        if cut > 0:
            yield joined[:cut]
            pending = joined[cut:]
        else:
            pending = joined


class SliceReader:
    """Reads consecutive slices of a stream.

    Args:
        pieces: the stream, in pieces.
        position: number of bytes before the first piece.
    """

    def __init__(self, pieces: Iterator[bytes], position: int) -> None:
        self._pieces = pieces
        self._position = position
        self._held = memoryview(b"")

    def slice(self, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of a slice, which must not begin before the end of the previous one.

        They must be consumed before the next slice is requested.

        Raises:
            IntegrityError: the stream ends before the slice does.
        """
        if not length:
            return
        for _ in self._take(offset - self._position):
            continue
        yield from self._take(length)

    def _take(self, length: int) -> Iterator[bytes]:
        while length > 0:
            if not self._held:
                piece = next(self._pieces, None)
                if piece is None:
                    raise IntegrityError(f"the output ends at plain byte {self._position}")
                self._held = memoryview(piece)
            part, self._held = self._held[:length], self._held[length:]
            self._position += len(part)
            length -= len(part)
            yield bytes(part)
