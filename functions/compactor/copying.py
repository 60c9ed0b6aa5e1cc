"""Server-side copies: sources whose bytes go into an output without passing through a worker."""

from __future__ import annotations

import re
from codecs import BOM_UTF8

from compactor.codecs import detect_compression
from compactor.commit_log import Output
from compactor.destination import Destination
from compactor.errors import UnreadableSource
from compactor.formats import detect
from compactor.manifest import ManifestRow
from compactor.model import (
    Compression,
    Format,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)
from compactor.packing import packing_class
from compactor.pending import COPY_SLICE_BYTES, PendingOutput, copy_ranges
from compactor.ports import ObjectStore
from compactor.settings import Settings

# Formats whose large sources are copied as they are: lines, without a header of their own.
COPIED_FORMATS = (Format.JSON_LINES, Format.TEXT)
_HEAD_BYTES = 64 * 1024
# Only what says how to read the bytes: a whole name may be too long for the key of an output.
_EXTENSION = re.compile(r"(?:\.[A-Za-z0-9]{1,16}){1,2}\Z")


def copied_signature(
    source: SourceObject, settings: Settings, store: ObjectStore
) -> Signature | None:
    """What a source is, when S3 can copy it among others; None when it must be read.

    It must be large, plain lines before and after, and without a byte order mark. Its head is
    read to tell, even when the settings name the format: they do not name the compression.
    """
    if source.size < COPY_SLICE_BYTES or settings.compression not in ("same", "none"):
        return None
    if settings.format not in ("auto", *COPIED_FORMATS):
        return None
    head = store.read_range(source, 0, _HEAD_BYTES)
    if head.startswith(BOM_UTF8) or detect_compression(head) is not Compression.NONE:
        return None
    forced = None if settings.format == "auto" else Format(settings.format)
    found = detect(head, source.key, complete=False, forced=forced)
    if found is None or found.format not in COPIED_FORMATS:
        return None
    return Signature(found.format, Compression.NONE)


def copy_whole(group: ObjectGroup, store: ObjectStore, destination: Destination) -> PendingOutput:
    """Server-side copy of one large source: no byte of it passes through this worker."""
    (source,) = group.sources
    extension = _EXTENSION.search(source.key.rsplit("/", 1)[-1], 1)
    key = destination.key(group, extension[0] if extension else "")
    upload_id = store.create_upload(destination.bucket, key, metadata=destination.metadata(group))
    try:
        parts = tuple(
            store.copy_part(destination.bucket, key, upload_id, number, source, start, length)
            for number, (start, length) in enumerate(copy_ranges(0, source.size), start=1)
        )
    except UnreadableSource as error:
        store.abort_upload(destination.bucket, key, upload_id)
        quarantined = Quarantined(source, QuarantineReason(error.reason), error.detail)
        return PendingOutput(group=group, output=None, rows=(), quarantined=(quarantined,))
    except BaseException:
        store.abort_upload(destination.bucket, key, upload_id)
        raise
    output = Output(
        bucket=destination.bucket,
        key=key,
        upload_id=upload_id,
        parts=parts,
        size=source.size,
        crc32=None,
        plain_bytes=None,
        records=None,
        format=None,
        compression=packing_class(source.key).compression,
        copied=True,
    )
    row = ManifestRow(source, 0, source.size, None, None, None)
    return PendingOutput(group=group, output=output, rows=(row,))
