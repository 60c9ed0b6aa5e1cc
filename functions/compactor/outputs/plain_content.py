"""The plain (decompressed) content of one source, whole or in pieces, counted as it is read.

Compressed sources are inflated in a separate thread, a few ahead of the source being placed. The
thread that places them holds the interpreter lock most of the time; inflating releases it.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from isal import isal_zlib

from compactor.encoding.codecs import decompress_stream, decompress_whole, detect_compression
from compactor.errors import UnreadableSource
from compactor.formats.characters import refuse_nul
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import Compression, QuarantineReason, SourceObject
from compactor.ports import SourceBody
from compactor.process.processors import processors
from compactor.settings.settings import Settings

_MAGIC_BYTES = 16


class PlainContent:
    """Plain bytes of one source, to be consumed once.

    Attributes:
        head: the first bytes; all of them if ``complete``.
        complete: True if ``head`` is the whole content.
        compression: the compression of the source.
        size, crc32: size and CRC32 of ``head`` and the bytes consumed after it.
    """

    __slots__ = ("_rest", "complete", "compression", "crc32", "head", "size")

    def __init__(self, head: bytes, rest: Iterator[bytes] | None, compression: Compression) -> None:
        self.head = head
        self.complete = rest is None
        self.compression = compression
        self.size = len(head)
        self.crc32 = isal_zlib.crc32(head)
        self._rest = rest

    def chunks(self) -> Iterator[bytes]:
        """Yield all content, beginning with the head."""
        yield self.head
        for chunk in self._rest or ():
            self._count(chunk)
            yield chunk

    def whole(self, limit: int) -> bytes:
        """Return all content in one piece, for formats that need it.

        Raises:
            UnreadableSource: the content is longer than ``limit`` bytes.
        """
        if self.complete:
            return self.head
        # BytesIO grows in place and returns its buffer without a copy; joining would hold two.
        whole = io.BytesIO()
        for piece in self.chunks():
            whole.write(piece)
            if self.size > limit:
                detail = f"a document of this format is read whole, and exceeds {limit:,} bytes"
                raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
        return whole.getvalue()

    def row(self, source: SourceObject, facts: SliceFacts) -> ManifestRow:
        """Return the manifest row of the source, after all content was consumed."""
        return ManifestRow(source, 0, 0, self.size, self.crc32, facts)

    def _count(self, data: bytes) -> None:
        self.size += len(data)
        self.crc32 = isal_zlib.crc32(data, self.crc32)


def read(body: SourceBody, settings: Settings) -> PlainContent:
    """Return the plain content of a source's body.

    Raises:
        UnreadableSource: the content is corrupt, truncated, suspiciously compressible or, if it is
            long, binary; raised only when that is reached.
    """
    max_expansion, whole_bytes = settings.limits.max_expansion, settings.limits.whole_bytes
    if body.content is not None:
        compression = detect_compression(body.content)
        if compression is Compression.NONE:
            return PlainContent(body.content, None, compression)
        whole = decompress_whole(
            body.content, compression, max_expansion=max_expansion, most_bytes=whole_bytes
        )
        if whole is not None:
            return PlainContent(whole, None, compression)
        pieces = decompress_stream((body.content,), compression, max_expansion=max_expansion)
        return _gather(pieces, compression, whole_bytes)
    if body.chunks is None:
        raise AssertionError(f"the store gave no content for {body.source.key}")
    raw = body.chunks()
    first = b""
    while len(first) < _MAGIC_BYTES and (chunk := next(raw, None)) is not None:
        first += chunk
    compression = detect_compression(first[:_MAGIC_BYTES])
    pieces = _prepend(first, raw)
    if compression is not Compression.NONE:
        pieces = decompress_stream(pieces, compression, max_expansion=max_expansion)
    return _gather(pieces, compression, whole_bytes)


def _gather(pieces: Iterator[bytes], compression: Compression, whole_bytes: int) -> PlainContent:
    """Hold content of up to ``whole_bytes`` completely, and only the head of longer content."""
    head: list[bytes] = []
    size = 0
    for piece in pieces:
        if not head:
            # Images and archives are refused before more of them is read.
            refuse_nul(piece)
        head.append(piece)
        size += len(piece)
        if size > whole_bytes:
            return PlainContent(b"".join(head), pieces, compression)
    return PlainContent(b"".join(head), None, compression)


def _prepend(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


# How many sources to inflate ahead; each holds up to ``whole_bytes`` of plain content.
_AHEAD = 4
# For smaller sources, handing over to another thread takes as long as inflating.
_LEAST_BYTES = 8 << 10

#: Returns the plain content of a source; to be called once. Raises what :func:`.plain_content.read`
#: raises.
Plain = Callable[[], PlainContent]


def inflated(
    bodies: Iterable[SourceBody], settings: Settings
) -> Iterator[tuple[SourceBody, Plain]]:
    """Yield the bodies in the same order, each with a function that returns its plain content.

    An error that ends the bodies early is raised after the last body received.

    Args:
        bodies: the bodies from the store.
        settings: the run's settings.
    """
    if processors() < 2:
        yield from ((body, partial(read, body, settings)) for body in bodies)
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="inflate")
    waiting: deque[tuple[SourceBody, Plain]] = deque()
    try:
        for body in bodies:
            if _is_worth_it(body):
                waiting.append((body, pool.submit(read, body, settings).result))
            elif waiting:
                waiting.append((body, partial(read, body, settings)))
            else:
                yield body, partial(read, body, settings)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting
    except Exception:
        yield from waiting
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _is_worth_it(body: SourceBody) -> bool:
    content = body.content
    if content is None or len(content) < _LEAST_BYTES:
        return False
    return detect_compression(content) is not Compression.NONE
