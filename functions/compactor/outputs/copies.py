"""Server-side copies: sources whose bytes go into an output without passing through a worker."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from compactor.destination import Destination
from compactor.encoding.codecs import detect_compression
from compactor.encoding.encoders import encoder
from compactor.encoding.output_encoding import packing_class
from compactor.errors import UnreadableSource
from compactor.formats import SPECS, Decide
from compactor.limits import WorkerLimits
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.model import (
    Compression,
    ObjectGroup,
    OutputForm,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
    StoredPart,
)
from compactor.outputs.detection import Detector, detector, passing_check
from compactor.outputs.output_writer import OutputWriter, Parts, copy_ranges
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

# Formats whose large sources are copied as they are: lines without a header.
COPIED_FORMATS = tuple(spec.format for spec in SPECS if spec.copied)
_END_BYTES = 64 * 1024
# Only the extension is kept, as a whole name may be too long for the key of an output.
_EXTENSION = re.compile(r"(?:\.[A-Za-z0-9]{1,16}){1,2}\Z")


def copied_signature(
    source: SourceObject,
    form: OutputForm,
    settings: Settings,
    store: ObjectStore,
    decide: Decide,
) -> tuple[Signature, bool, bytes] | None:
    """Return a source's signature, whether it ends with a newline, and its head.

    None if S3 cannot copy the source into an output with others, so that it must be read. To be
    copied, it must be large, consist of uncompressed lines that stay so in the output, and have no
    byte order mark. This is decided by its first and last bytes, even if the settings declare the
    format: they do not declare the compression, and the source may end within a line that must not
    be joined with another.
    """
    if source.size < settings.limits.copy_slice_bytes or not store.traits.copies:
        return None
    if form.compression not in (None, Compression.NONE):
        return None
    if settings.format not in ("auto", *COPIED_FORMATS):
        return None
    head = store.read_range(source, 0, _END_BYTES)
    if head.startswith(BOM_UTF8) or detect_compression(head) is not Compression.NONE:
        return None
    try:
        return _proven_signature(source, head, detector(settings, decide), settings, store)
    except UnreadableSource:
        # Reading all of it will either give a reason or show that it is valid.
        return None


def _proven_signature(
    source: SourceObject,
    head: bytes,
    detect: Detector,
    settings: Settings,
    store: ObjectStore,
) -> tuple[Signature, bool, bytes] | None:
    found = detect(head, source.key, False)
    if found is None or found.format not in COPIED_FORMATS:
        return None
    signature = Signature(found.format, Compression.NONE)
    length = min(_END_BYTES, source.size)
    tail = store.read_range(source, source.size - length, length)
    last_lines = tail[tail.find(b"\n") + 1 :]
    if len(last_lines) in {0, len(tail)}:
        return None
    check = passing_check(signature, settings)
    check.feed(head[: head.rfind(b"\n") + 1])
    check.feed(last_lines)
    check.finish()
    return signature, tail.endswith(b"\n"), head


class _Target(NamedTuple):
    """The output of a source that is copied as it is."""

    store: ObjectStore
    bucket: str
    key: str
    metadata: Callable[[], Mapping[str, str]]
    limits: WorkerLimits


class _Stored(NamedTuple):
    """An upload with a whole source; its CRC32 is known only if this worker read the bytes."""

    upload_id: str
    parts: tuple[StoredPart, ...]
    crc32: int | None


def copy_whole(
    group: ObjectGroup, limits: WorkerLimits, store: ObjectStore, destination: Destination
) -> PendingOutput:
    """Copy one large source as it is, by S3, or through this worker if copies are not safe."""
    (source,) = group.sources
    extension = _EXTENSION.search(source.key.rsplit("/", 1)[-1], 1)
    key = destination.key(group, extension[0] if extension else "")
    take = _copied if store.traits.copies and group.form.copies else _passed_through
    metadata = partial(destination.metadata, group)
    try:
        stored = take(source, _Target(store, destination.bucket, key, metadata, limits))
    except UnreadableSource as error:
        quarantined = Quarantined(source, QuarantineReason(error.reason), error.detail)
        return PendingOutput(group=group, output=None, rows=(), quarantined=(quarantined,))
    output = Output(
        bucket=destination.bucket,
        key=key,
        upload_id=stored.upload_id,
        parts=stored.parts,
        size=source.size,
        crc32=stored.crc32,
        plain_bytes=None,
        records=None,
        format=None,
        compression=packing_class(source.key).compression,
        copied=True,
    )
    row = ManifestRow(source, 0, source.size, None, None, None)
    return PendingOutput(group=group, output=output, rows=(row,))


def _copied(source: SourceObject, target: _Target) -> _Stored:
    store, bucket, key, metadata, limits = target
    parts = Parts(store, bucket, key, lambda: store.create_upload(bucket, key, metadata=metadata()))
    try:
        for start, length in copy_ranges(0, source.size, limits):
            parts.copy(source, start, length)
        upload_id, stored = parts.finish()
    except BaseException:
        parts.abort()
        raise
    return _Stored(upload_id, stored, None)


def _passed_through(source: SourceObject, target: _Target) -> _Stored:
    store, bucket, key, metadata, limits = target
    if source.size > limits.most_uploaded_bytes:
        detail = f"{source.size} bytes, and this store copies nothing safely: too many parts"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    plain = encoder(Compression.NONE)
    writer = OutputWriter(store, bucket, key, plain, metadata=metadata, limits=limits)
    try:
        for body in store.read_sources((source,)):
            if body.error is not None:
                raise body.error
            for chunk in body.chunks() if body.chunks is not None else (body.content or b"",):
                writer.write(chunk)
        upload_id, parts = writer.finish()
    except BaseException:
        writer.abort()
        raise
    return _Stored(upload_id, parts, writer.crc32)
